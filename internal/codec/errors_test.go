package codec_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/codec"
)

var (
	errDiverged = errors.New("training diverged")
	errPrivate  = errors.New("known to nobody")
)

// A batchError is registered; its cause travels inside it.
type batchError struct {
	Batch int
	Err   error
}

func (e *batchError) Error() string { return fmt.Sprintf("batch %d: %v", e.Batch, e.Err) }
func (e *batchError) Unwrap() error { return e.Err }

// A codeError is registered and not a pointer.
type codeError int

func (e codeError) Error() string { return fmt.Sprintf("code %d", int(e)) }

// An awkwardError is registered but cannot be sent when What holds an unregistered type.
type awkwardError struct{ What any }

func (e awkwardError) Error() string { return "awkward" }

func init() {
	codec.RegisterError("wire_test.errDiverged", errDiverged)
	codec.RegisterType[*batchError]("wire_test.batchError")
	codec.RegisterType[codeError]("wire_test.codeError")
	codec.RegisterType[awkwardError]("wire_test.awkwardError")
	codec.RegisterType[layer]("wire_test.layer")
	codec.RegisterType[*tree]("wire_test.tree")
	codec.RegisterType[*buffer]("wire_test.buffer")
}

func TestSentinelsAreFoundOnTheOtherSide(t *testing.T) {
	_, statErr := os.Stat("no such file")
	for _, c := range []struct {
		err  error
		want []error
	}{
		{fmt.Errorf("read header: %w", io.ErrUnexpectedEOF), []error{io.ErrUnexpectedEOF}},
		{fmt.Errorf("step 3: %w", errDiverged), []error{errDiverged}},
		{errors.Join(errDiverged, fmt.Errorf("x: %w", context.Canceled)), []error{errDiverged, context.Canceled}},
		{fmt.Errorf("%w and %w", errPrivate, io.EOF), []error{io.EOF}},
		{fmt.Errorf("open data: %w", statErr), []error{fs.ErrNotExist}},
	} {
		got := roundTrip(t, c.err)
		if got.Error() != c.err.Error() {
			t.Errorf("%q arrived as %q", c.err, got)
		}
		for _, want := range c.want {
			if !errors.Is(got, want) {
				t.Errorf("%q arrived as %#v, which is not %q", c.err, got, want)
			}
		}
		if errors.Is(got, errPrivate) || errors.Is(got, fs.ErrPermission) {
			t.Errorf("%q arrived as %#v, which is too much", c.err, got)
		}
	}
}

func TestAnUnknownErrorArrivesAsItsText(t *testing.T) {
	got := roundTrip(t, errPrivate)
	if r, ok := got.(*codec.RemoteError); !ok || r.Text != errPrivate.Error() || len(r.Causes) != 0 {
		t.Errorf("arrived %#v", got)
	}
	if roundTrip(t, error(nil)) != nil {
		t.Error("no error arrived as one")
	}
}

func TestASentinelItselfArrivesAsItself(t *testing.T) {
	for _, err := range []error{io.EOF, fs.ErrNotExist, context.DeadlineExceeded, errDiverged} {
		if got := roundTrip(t, err); got != err {
			t.Errorf("%v arrived as %#v", err, got)
		}
	}
}

func TestRegisteredErrorsTravelAsThemselves(t *testing.T) {
	in := fmt.Errorf("epoch 2: %w", &batchError{7, fmt.Errorf("labels: %w", io.EOF)})
	got := roundTrip(t, in)
	b, ok := errors.AsType[*batchError](got)
	if !ok || b.Batch != 7 || got.Error() != in.Error() || !errors.Is(got, io.EOF) || !errors.Is(b, io.EOF) {
		t.Errorf("arrived %#v", got)
	}
	if got := roundTrip[error](t, codeError(3)); got != codeError(3) {
		t.Errorf("codeError(3) arrived as %#v", got)
	}
	if got := roundTrip(t, errors.Join(codeError(1), codeError(2))); !errors.Is(got, codeError(1)) ||
		!errors.Is(got, codeError(2)) {
		t.Errorf("two codes arrived as %#v", got)
	}
	_, statErr := os.Stat("no such file")
	if p, ok := errors.AsType[*fs.PathError](roundTrip(t, statErr)); !ok || p.Path != "no such file" ||
		!errors.Is(p, fs.ErrNotExist) {
		t.Errorf("PathError arrived as %#v", p)
	}
}

func TestALongChainOfRegisteredErrorsStaysShort(t *testing.T) {
	err := error(io.EOF)
	for i := range 30 {
		err = &batchError{i, err}
	}
	if n := len(encode(t, err).Body); n > 30*30*20 {
		t.Errorf("30 levels take %d bytes", n)
	}
	if got := roundTrip(t, err); got.Error() != err.Error() || !errors.Is(got, io.EOF) {
		t.Errorf("arrived %v", got)
	}
}

func TestAnErrorArrivesEvenIfACauseCannot(t *testing.T) {
	in := errors.Join(awkwardError{func() {}}, codeError(4))
	m := encode(t, in)
	got, err := decode[error](t, m, nil)
	if err != nil || got.Error() != in.Error() || !errors.Is(got, codeError(4)) {
		t.Errorf("arrived %#v, %v", got, err)
	}
	deep := error(io.EOF)
	for i := range 200 {
		deep = &batchError{i, deep}
	}
	if got, err := decode[error](t, encode(t, deep), nil); err != nil || got.Error() != deep.Error() {
		t.Errorf("200 levels: %v", err)
	}
}

func TestErrorsWhoseMethodsPanicAreOnlyText(t *testing.T) {
	got := roundTrip(t, error((*batchError)(nil)))
	if !strings.Contains(got.Error(), "panicked") {
		t.Errorf("a nil *batchError arrived as %q", got)
	}
	// A PathError without a cause panics in Error: the text does not come from it.
	if got := roundTrip(t, error(&fs.PathError{Op: "open", Path: "x"})); got == nil {
		t.Error("no error arrived")
	}
}

func TestErrorsInFieldsTravel(t *testing.T) {
	got := roundTrip(t, job{Cause: fmt.Errorf("stop: %w", context.Canceled)})
	if !errors.Is(got.Cause, context.Canceled) || got.Cause.Error() != "stop: context canceled" {
		t.Errorf("arrived %#v", got.Cause)
	}
}

func TestRegisteringTwicePanics(t *testing.T) {
	for _, c := range []struct {
		want     string
		register func()
	}{
		{"already registered", func() { codec.RegisterType[layer]("another name") }},
		{"name is already taken", func() { codec.RegisterType[forest]("wire_test.layer") }},
		{"cannot cross", func() { codec.RegisterType[func()]("f") }},
		{"is an interface", func() { codec.RegisterType[any]("any") }},
		{"name is already taken", func() { codec.RegisterError("io.EOF", errPrivate) }},
		{"is nil", func() { codec.RegisterError("nil", nil) }},
	} {
		func() {
			defer func() {
				if p := fmt.Sprint(recover()); !strings.Contains(p, c.want) {
					t.Errorf("panic %q, want one with %q", p, c.want)
				}
			}()
			c.register()
		}()
	}
}
