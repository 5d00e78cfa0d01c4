package bench

import "errors"

var (
	// ErrSuite is wrapped where a suite is asked for that does not exist.
	ErrSuite = errors.New("bench: no such suite")
	// ErrPeer is wrapped where the program to be measured against does not run.
	ErrPeer = errors.New("bench: peer does not run")
)
