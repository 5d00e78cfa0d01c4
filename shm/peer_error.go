package shm

import "fmt"

// A PeerError says that another participant of the domain died, and who it was.
type PeerError struct {
	PID   int   // process id in the namespace of whoever noticed
	Seat  int   // participant seat, 0 to 255
	Cause error // what its death means for the caller
}

// Error returns one line.
func (e *PeerError) Error() string {
	return fmt.Sprintf("shm: participant %d (pid %d) died: %v", e.Seat, e.PID, e.Cause)
}

// Unwrap returns the cause.
func (e *PeerError) Unwrap() error { return e.Cause }
