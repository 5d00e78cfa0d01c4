package manager_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/manager"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A recorder is a stream that keeps what is written to it. A closed proxy is released on the side,
// so that may still be going on.
type recorder struct {
	net.Conn
	mu   sync.Mutex
	said []byte
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	r.said = append(r.said, b...)
	r.mu.Unlock()
	return r.Conn.Write(b)
}

func (r *recorder) bytes() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.said)
}

// session records what a client says to a gateway when it works with some objects.
func session(f *testing.F, m *manager.Manager) (said [][]byte) {
	ctx := context.Background()
	var mu sync.Mutex
	var all []*recorder
	far, err := manager.Connect(ctx, func(context.Context) (manager.Stream, error) {
		a, b := net.Pipe()
		go m.Serve(ctx, b)
		r := &recorder{Conn: a}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, r)
		return r, nil
	})
	testutil.NoError(f, err)
	d, err := manager.NewDict[string, *manager.Value[int]](ctx, far)
	testutil.NoError(f, err)
	v, err := manager.NewValue(ctx, far, 1)
	testutil.NoError(f, err)
	testutil.NoError(f, d.Set(ctx, "v", v))
	_, err = v.Add(ctx, 1)
	testutil.NoError(f, err)
	_, err = d.All(ctx)
	testutil.NoError(f, err)
	testutil.NoError(f, v.Close())
	testutil.NoError(f, far.Txn(ctx, func(tx context.Context) error { return d.Clear(tx) }))
	testutil.NoError(f, d.Close())
	testutil.NoError(f, far.Close())
	mu.Lock()
	defer mu.Unlock()
	for _, r := range all {
		said = append(said, r.bytes())
	}
	return said
}

// FuzzServe_Stream has a gateway, and the server behind it, hear arbitrary bytes from a client that
// has proven the key. They answer or end the stream; the server lives on, and nothing is left.
func FuzzServe_Stream(f *testing.F) {
	ctx := context.Background()
	m, err := manager.New(ctx)
	testutil.NoError(f, err)
	f.Cleanup(func() { testutil.NoError(f, m.Close()) })
	other, err := manager.New(ctx) // a gateway knows the sessions that are recorded
	testutil.NoError(f, err)
	f.Cleanup(func() { testutil.NoError(f, other.Close()) })
	for _, said := range session(f, other) {
		f.Add(said)
	}
	hello := append(binary.LittleEndian.AppendUint32(nil, 16), 'H')
	hello = append(hello, make([]byte, 16)...)
	f.Add(hello)
	f.Add(append(slices.Clone(hello), 4, 0, 0, 0, 'C', 0xff, 0xff, 0xff, 0xff))
	witness, err := manager.NewValue(ctx, m, 1)
	testutil.NoError(f, err)
	f.Cleanup(func() { testutil.NoError(f, witness.Close()) })
	testutil.NoError(f, witness.Set(ctx, 1)) // the lanes of this process are there
	domain, err := arena.Default()
	testutil.NoError(f, err)
	before := domain.Stats().Blocks
	f.Fuzz(func(t *testing.T, stream []byte) {
		limited, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		served := make(chan struct{})
		a, b := net.Pipe()
		go func() { m.Serve(limited, b); close(served) }()
		go func() {
			a.Write(stream)
			a.Write(make([]byte, 16)) // a frame of nothing, so that a hello is answered
			a.Close()
		}()
		a.SetReadDeadline(time.Now().Add(20 * time.Second))
		for buf := make([]byte, 4096); ; {
			if _, err := a.Read(buf); err != nil {
				break
			}
		}
		<-served
		if limited.Err() != nil {
			t.Fatal("it hangs")
		}
		if n, err := witness.Add(ctx, 0); n != 1 || err != nil {
			t.Fatalf("the server is not well: %d, %v", n, err)
		}
		testutil.EventuallyNoError(t, func() error {
			if domain.Stats().Blocks > before {
				return fmt.Errorf("%d blocks became %d", before, domain.Stats().Blocks)
			}
			return nil
		})
	})
}
