package goexit_test

import (
	"bytes"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/goexit"
)

type panics struct{}

func (panics) Error() string { panic("in Error") }

func TestRecover_APanicIsAnErrorOfTheKind(t *testing.T) {
	kind, failed := errors.New("kind"), errors.New("failed")
	if err := goexit.Recover(kind, func() error { return failed }); err != failed {
		t.Errorf("got %v, want the error of the function", err)
	}
	err := goexit.Recover(kind, func() error { panic("on purpose") })
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), "on purpose") ||
		!strings.Contains(err.Error(), "callback_test.go") {
		t.Errorf("got %v, want the kind, the value and the stack", err)
	}
	err = goexit.Recover(kind, func() error { panic(panics{}) })
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), "in Error") {
		t.Errorf("got %v, want the panic of the value's method", err)
	}
}

// RunCallback logs failures instead of ending the process.
func TestRunCallback_LogsWhatTheCallbackDid(t *testing.T) {
	var log bytes.Buffer
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	for want, f := range map[string]func(){
		"": func() {}, "hook panicked": func() { panic("on purpose") }, "hook did not return": runtime.Goexit,
	} {
		log.Reset()
		done := make(chan bool)
		go func() {
			defer close(done)
			goexit.RunCallback("hook", f)
		}()
		<-done
		if got := log.String(); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("log %q, want %q", got, want)
		}
	}
}
