package dl

import "errors"

var (
	// ErrNotLoaded is wrapped by Open where none of the libraries can be loaded.
	ErrNotLoaded = errors.New("dl: library not loaded")
	// ErrNoSymbol is wrapped by Symbol for a function that the library does not have.
	ErrNoSymbol = errors.New("dl: no such symbol")
)
