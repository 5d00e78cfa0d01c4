package shm

import "fmt"

// A PeerError reports the death of another process, and its effect on the caller: [errors.Is]
// finds the effect, such as [ErrOwnerDied], in Cause.
type PeerError struct {
	PID   int   // process id in this process's namespace; 0 on another machine, or not started
	Seat  int   // its seat in the domain, 0 to 255; -1 if unknown
	Cause error // the effect of its death on the caller
}

// Error returns one line.
func (e *PeerError) Error() string {
	switch {
	case e.Seat >= 0:
		return fmt.Sprintf("shm: participant %d (pid %d) died: %v", e.Seat, e.PID, e.Cause)
	case e.PID == 0:
		return fmt.Sprintf("shm: process died, on another machine or before it started: %v", e.Cause)
	}
	return fmt.Sprintf("shm: process %d died: %v", e.PID, e.Cause)
}

// Unwrap returns Cause.
func (e *PeerError) Unwrap() error { return e.Cause }
