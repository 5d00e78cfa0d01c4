package hogwild

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
	"time"
)

// Any broken socket of the process brings SIGPIPE; only a write of the run says that its reader has
// left.
func TestOnlyAWriteWithoutAReaderEndsTheRun(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	o := Options{Stdout: w, Stderr: io.Discard}
	ctx, release := o.contextWhileRead(t.Context())
	defer release()
	if err := syscall.Kill(os.Getpid(), syscall.SIGPIPE); err != nil {
		t.Fatal(err)
	}
	for range 100 { // the signal has come by then, and would end it a moment later
		time.Sleep(time.Millisecond)
		if _, err := io.WriteString(o.Stdout, "x"); err != nil || ctx.Err() != nil {
			t.Fatalf("%v, %v", err, context.Cause(ctx))
		}
	}
	r.Close()
	if _, err := io.WriteString(o.Stdout, "x"); !errors.Is(err, syscall.EPIPE) {
		t.Error(err)
	}
	if err := context.Cause(ctx); !errors.Is(err, ErrUnread) || !errors.Is(err, context.Canceled) {
		t.Errorf("the cause is %v", err)
	}
}
