package goexit

import "errors"

// Err is the result of a function that called runtime.Goexit.
var Err = errors.New("runtime.Goexit ended the function, which must return instead " +
	"(FailNow and Fatal of package testing call Goexit, and so does testify's require)")

// Call calls f, and then ended with the result of f, on the same goroutine. If f calls
// runtime.Goexit, Call passes Err to ended and does not return: the goroutine ends after ended
// returns. If f panics, Call propagates the panic and does not call ended. ended should therefore
// unblock all goroutines that wait for f.
func Call(f func() error, ended func(error)) {
	err := Err
	defer func() {
		if p := recover(); p != nil {
			panic(p)
		}
		ended(err)
	}()
	err = f()
}
