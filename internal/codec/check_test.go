package codec_test

import (
	"context"
	"encoding"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/codec"
)

type (
	logged  struct{ Log func() }
	trainer struct{ Net logged }
	cyclic  struct {
		Next *cyclic
		Done chan int
	}
	halfway struct{ N int }
	stamped struct {
		time.Time
		Name string
	}
	bulky struct {
		*buffer
		Name string
	}
	day struct{ time.Time }
)

func (*halfway) MarshalWire(e *codec.Encoder) error { e.Nil(); return nil }

func refused[T any](t *testing.T, want ...string) {
	t.Helper()
	err := codec.Check[T]()
	if !errors.Is(err, codec.ErrType) {
		t.Errorf("%T: Check returned %v, which is not ErrType", *new(T), err)
		return
	}
	for _, s := range want {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%T: %q does not contain %q", *new(T), err, s)
		}
	}
}

func TestCheckNamesTheFieldThatCannotCross(t *testing.T) {
	refused[trainer](t, "trainer.Net.Log: func() cannot cross processes: ")
	refused[cyclic](t, "cyclic.Done: chan int cannot cross", "ipc.Queue")
	refused[map[string][]trainer](t, "map[string][]codec_test.trainer[value][].Net.Log: func()")
	refused[[]*trainer](t, "[]*codec_test.trainer[].Net.Log")
	refused[struct{ Mu sync.Mutex }](t, ".Mu: sync.Mutex", "package ipc")
	refused[struct{ mu sync.Mutex }](t, ".mu: sync.Mutex", "package ipc")
	refused[struct{ n int }](t, ".n: int", "not exported")
	refused[struct{ N atomic.Int64 }](t, "ipc.Value")
	refused[struct{ Ctx context.Context }](t, ".Ctx: context.Context", "gets its own context")
	refused[os.File](t, "File: os.File cannot cross", "*os.File")
	refused[*net.TCPConn](t, "TCPConn: net.TCPConn cannot cross", "File", "net.FileConn")
	refused[struct{ L net.Listener }](t, ".L: net.Listener cannot cross", "net.FileListener")
	refused[io.Reader](t, "Reader: io.Reader", "any and error")
	refused[uintptr](t, "uint64")
	refused[unsafe.Pointer](t)
	refused[chan<- struct{}](t)
	refused[encoding.TextMarshaler](t)
}

func TestCheckRefusesKeysThatDoNotStayEqual(t *testing.T) {
	refused[map[any]int](t, "[key]: interface {}")
	refused[map[*int]int](t, "[key]: *int")
	refused[map[time.Time]int](t, "[key]: time.Time")
	refused[map[struct{ P *int }]int](t, "[key]")
	refused[map[buffer]int](t, "[key]")
}

func TestCheckRefusesMethodsThatWouldDropFields(t *testing.T) {
	refused[stamped](t, "MarshalBinary", "embedded Time")
	refused[bulky](t, "MarshalWire", "embedded buffer")
	refused[halfway](t, "MarshalWire and UnmarshalWire")
	if err := codec.Check[struct {
		buffer
		Look func() `wire:"-"`
	}](); err != nil {
		t.Errorf("a struct whose other field stays at home: %v", err)
	}
	if err := codec.Check[day](); err != nil {
		t.Errorf("a struct that is nothing but an embedded time: %v", err)
	}
}

func TestCheckIsNilForWhatCanCross(t *testing.T) {
	for _, err := range []error{codec.Check[job](), codec.Check[*tree](), codec.Check[*buffer](),
		codec.Check[any](), codec.Check[error](), codec.Check[struct{}]()} {
		if err != nil {
			t.Error(err)
		}
	}
}

func TestAFailedPlanLeavesNothingBehind(t *testing.T) {
	type inner struct{ Next *inner }
	type outer struct {
		Fine inner
		Bad  []func()
	}
	for range 2 {
		refused[outer](t, "outer.Bad[]: func()")
	}
	type node struct {
		Self *node
		Bad  func()
	}
	refused[node](t, "node.Bad")
	refused[[]node](t, "[].Bad")
	if got := roundTrip(t, inner{&inner{}}); got.Next == nil || got.Next.Next != nil {
		t.Errorf("arrived %+v", got)
	}
}
