package nats_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/shm"
	"github.com/shoal-mp/shoal/nats"
	"github.com/shoal-mp/shoal/nats/broker"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/wire"
)

// roleVar has the test binary be another process: a node of a cluster, a producer, a consumer.
const roleVar = "SHOAL_TEST_NATS_ROLE"

var roles = make(map[string]func(context.Context) error)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		if err := roles[role](context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, role+":", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	shoaltest.TestMain(m)
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t testing.TB, err error, want ...error) {
	t.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Errorf("error %v is not %v", err, w)
		}
	}
}

// wantText checks that an error says something.
func wantText(t testing.TB, err error, want ...string) {
	t.Helper()
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("error %v does not say %q", err, w)
		}
	}
}

func watched(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("the test hangs"))
	t.Cleanup(cancel)
	return ctx
}

// start starts a broker for a test.
func start(t testing.TB, o broker.Options) *broker.Broker {
	t.Helper()
	o.Dir = t.TempDir()
	b, err := broker.Start(o)
	check(t, err)
	t.Cleanup(func() { check(t, b.Close()) })
	return b
}

func connect(t testing.TB, url string) *nats.Conn {
	t.Helper()
	c, err := nats.Connect(watched(t), url, nats.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, c.Close()) })
	return c
}

// local starts a broker and connects to it.
func local(t testing.TB) *nats.Conn {
	t.Helper()
	return connect(t, start(t, broker.Options{}).URL())
}

func open[T any](t testing.TB, c *nats.Conn, name string, o nats.QueueOptions) *nats.Queue[T] {
	t.Helper()
	q, err := nats.OpenQueue[T](watched(t), c, name, o)
	check(t, err)
	t.Cleanup(func() { check(t, q.Close()) })
	return q
}

// eventually waits until something is so.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for begin := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > 40*time.Second {
			t.Fatal("it does not come about: " + what)
		}
	}
}

func same(t testing.TB, got, want *tensor.Tensor) {
	t.Helper()
	if got.DType() != want.DType() || !slices.Equal(got.Shape(), want.Shape()) || !tensor.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// noBlocks wants the domain to have no more blocks at the end than now.
func noBlocks(t testing.TB) {
	t.Helper()
	d, err := shm.Default()
	if err != nil {
		t.Skip(err)
	}
	before := d.Stats().Blocks
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		eventually(t, "no block is left", func() bool {
			runtime.GC() // views that were not closed
			return d.Stats().Blocks <= before
		})
	})
}

func count(t testing.TB, q interface {
	Stats(context.Context) (nats.QueueStats, error)
}) nats.QueueStats {
	t.Helper()
	s, err := q.Stats(watched(t))
	check(t, err)
	return s
}

// unknown is a value that a program reads only while it knows how.
type unknown struct{ N byte }

var known atomic.Bool

func init() {
	known.Store(true)
	wire.RegisterType[unknown]("nats_test.unknown")
}

func (u unknown) MarshalBinary() ([]byte, error) { return []byte{u.N}, nil }

func (u *unknown) UnmarshalBinary(b []byte) error {
	if !known.Load() || len(b) != 1 {
		return errors.New("another declaration")
	}
	u.N = b[0]
	return nil
}
