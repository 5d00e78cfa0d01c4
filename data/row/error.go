package row

import "fmt"

// An Error says which line or row of a file is not a sample, and why.
type Error struct {
	Path   string
	Unit   string // "line", counted from 1 as editors do, or "row", counted from 0
	Number int
	Err    error
}

// Error returns one line.
func (e *Error) Error() string {
	return fmt.Sprintf("read %s: %s %d: %v", e.Path, e.Unit, e.Number, e.Err)
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }
