// Package goexit runs user functions so that a call of runtime.Goexit in them becomes an error, and
// on goroutines of the library a panic as well. The
// methods FailNow, Fatal and Skip of package testing call runtime.Goexit, and so does package
// require of testify. Without this package, a goroutine of the library would end in the middle of
// its work, and callers that wait for its result would block forever.
package goexit
