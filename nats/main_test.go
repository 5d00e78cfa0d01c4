package nats_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/nats"
	"github.com/shoal-mp/shoal/nats/broker"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
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

// start starts a broker for a test.
func start(t testing.TB, o broker.Options) *broker.Broker {
	t.Helper()
	o.Dir = t.TempDir()
	b, err := broker.Start(o)
	testutil.NoError(t, err)
	t.Cleanup(func() { testutil.NoError(t, b.Close()) })
	return b
}

func connect(t testing.TB, url string) *nats.Conn {
	t.Helper()
	c, err := nats.Connect(testutil.Context(t), url, nats.Options{})
	testutil.NoError(t, err)
	t.Cleanup(func() { testutil.NoError(t, c.Close()) })
	return c
}

// local starts a broker and connects to it.
func local(t testing.TB) *nats.Conn {
	t.Helper()
	return connect(t, start(t, broker.Options{}).URL())
}

func open[T any](t testing.TB, c *nats.Conn, name string, o nats.QueueOptions) *nats.Queue[T] {
	t.Helper()
	q, err := nats.OpenQueue[T](testutil.Context(t), c, name, o)
	testutil.NoError(t, err)
	t.Cleanup(func() { testutil.NoError(t, q.Close()) })
	return q
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
	d, err := arena.Default()
	if err != nil {
		t.Skip(err)
	}
	before := d.Stats().Blocks
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		testutil.Eventually(t, func() bool {
			runtime.GC() // views that were not closed
			return d.Stats().Blocks <= before
		}, "blocks are left")
	})
}

func count(t testing.TB, q interface {
	Stats(context.Context) (nats.QueueStats, error)
}) nats.QueueStats {
	t.Helper()
	s, err := q.Stats(testutil.Context(t))
	testutil.NoError(t, err)
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
