package sentinel

// New returns an error with the text text that wraps kind: [errors.Is] reports true for kind. Its
// text does not include the text of kind. For example, the error of a closed queue wraps
// [os.ErrClosed], which mentions a file.
func New(text string, kind error) error { return &sentinelError{text, kind} }

type sentinelError struct {
	text string
	kind error
}

func (e *sentinelError) Error() string { return e.text }
func (e *sentinelError) Unwrap() error { return e.kind }
