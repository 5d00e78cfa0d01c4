package dl

import "errors"

var (
	// ErrNotLoaded is wrapped by the error of Open if none of the libraries can be loaded.
	ErrNotLoaded = errors.New("dl: library not loaded")
	// ErrNoSymbol is wrapped by the error of Symbol if the library does not have the function.
	ErrNoSymbol = errors.New("dl: no such symbol")
)
