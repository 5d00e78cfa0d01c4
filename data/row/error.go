package row

import "fmt"

// An Error reports a line or row of a file that cannot be converted to a sample, and the cause.
type Error struct {
	Path   string
	Unit   string // "line", counted from 1 as in editors, or "row", counted from 0
	Number int
	Err    error
}

// Error returns a one-line description.
func (e *Error) Error() string {
	return fmt.Sprintf("read %s: %s %d: %v", e.Path, e.Unit, e.Number, e.Err)
}

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }
