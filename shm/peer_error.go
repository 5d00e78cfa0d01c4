package shm

import "fmt"

// A PeerError says that another process died, and which process it was.
type PeerError struct {
	PID   int   // process id, in the namespace of the process that noticed; 0 on another machine, or not started
	Seat  int   // its seat in the domain, 0 to 255; -1 if it is not known by its seat
	Cause error // what its death means for the caller
}

// Error returns one line.
func (e *PeerError) Error() string {
	switch {
	case e.Seat >= 0:
		return fmt.Sprintf("shm: participant %d (pid %d) died: %v", e.Seat, e.PID, e.Cause)
	case e.PID == 0:
		return fmt.Sprintf("shm: a process on another machine, or one that did not start, died: %v", e.Cause)
	}
	return fmt.Sprintf("shm: process %d died: %v", e.PID, e.Cause)
}

// Unwrap returns the cause.
func (e *PeerError) Unwrap() error { return e.Cause }
