package bench

import "errors"

var (
	// ErrSuite is wrapped if a requested suite does not exist.
	ErrSuite = errors.New("bench: no such suite")
	// ErrPeer is wrapped if a peer program cannot be run.
	ErrPeer = errors.New("bench: peer does not run")
)
