package bench

import "errors"

var (
	// ErrSuite is wrapped if a requested suite does not exist.
	ErrSuite = errors.New("bench: unknown suite")
	// ErrPeer is wrapped if a peer program cannot be run.
	ErrPeer = errors.New("bench: peer cannot run")
)
