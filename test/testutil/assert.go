package testutil

import (
	"errors"
	"strings"
	"testing"
)

// NoError ends the test if any of errs is not nil. It must be called from the goroutine of the
// test, as [testing.TB.FailNow].
func NoError(tb testing.TB, errs ...error) {
	tb.Helper()
	for _, err := range errs {
		if err != nil {
			tb.Fatal(err)
		}
	}
}

// Value checks the results of a call with an error. The returned function ends the test if err is
// not nil, and returns v otherwise:
//
//	f := testutil.Value(os.Open(name))(t)
func Value[T any](v T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		NoError(tb, err)
		return v
	}
}

// Must returns v, and panics with err if err is not nil.
func Must[T any](v T, err error) T {
	MustNoError(err)
	return v
}

// MustNoError panics with err if err is not nil.
func MustNoError(err error) {
	if err != nil {
		panic(err)
	}
}

// ErrorIs reports an error of the test for each target that err does not wrap, see [errors.Is]. The
// test goes on. A nil target wants err to be nil.
func ErrorIs(tb testing.TB, err error, targets ...error) {
	tb.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			tb.Errorf("got error %v, want one that wraps %v", err, target)
		}
	}
}

// ErrorContains reports an error of the test for each substring that the text of err does not
// contain, or if err is nil. The test goes on.
func ErrorContains(tb testing.TB, err error, substrings ...string) {
	tb.Helper()
	if err == nil {
		tb.Errorf("got no error, want one with the text %q", substrings)
		return
	}
	for _, s := range substrings {
		if !strings.Contains(err.Error(), s) {
			tb.Errorf("got error %v, want one with the text %q", err, s)
		}
	}
}
