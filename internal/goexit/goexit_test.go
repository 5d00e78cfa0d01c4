package goexit_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/shoal-mp/shoal/internal/goexit"
)

func TestCall_PassesTheResultOn(t *testing.T) {
	want := errors.New("failed")
	var got error
	goexit.Call(func() error { return want }, func(err error) { got = err })
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestCall_AGoexitIsAnError(t *testing.T) {
	got := make(chan error, 1)
	returned := make(chan bool)
	go func() {
		defer close(returned)
		goexit.Call(func() error { runtime.Goexit(); return nil }, func(err error) { got <- err })
		returned <- true
	}()
	if <-returned {
		t.Error("Call returned, want the end of its goroutine")
	}
	if err := <-got; err != goexit.Err {
		t.Errorf("got %v, want %v", err, goexit.Err)
	}
}

func TestCall_APanicGoesOn(t *testing.T) {
	defer func() {
		if p := recover(); p != "of the user" {
			t.Errorf("recovered %v, want the panic of the function", p)
		}
	}()
	goexit.Call(func() error { panic("of the user") }, func(err error) { t.Errorf("ended is called with %v", err) })
}
