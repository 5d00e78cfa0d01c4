// Package goexit runs functions of users so that a call of runtime.Goexit in them is an error. The
// methods FailNow, Fatal and Skip of package testing call runtime.Goexit, and so does testify's
// package require. Without this package, a goroutine of the library would then end in the middle
// of its work, and whoever waits for its result would wait for ever.
package goexit
