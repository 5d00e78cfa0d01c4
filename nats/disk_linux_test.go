package nats_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/shoal-mp/shoal/nats"
	"github.com/shoal-mp/shoal/nats/broker"
	"github.com/shoal-mp/shoal/test/testutil"
)

// onDisk starts a broker whose disk has so many MiB, of which some stay free.
func onDisk(t *testing.T, size string, reserve int64) (b *broker.Broker, dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("a disk that fills up needs the right to mount one: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	b, err := broker.Start(broker.Options{Dir: dir, Reserve: reserve, MaxStore: 1 << 30,
		Told: func(what string) { t.Log(what) }})
	testutil.NoError(t, err)
	t.Cleanup(func() { testutil.NoError(t, b.Close()) })
	return b, dir
}

func page(i int) []byte {
	v := make([]byte, 700_000)
	v[0] = byte(i)
	return v
}

// putOne puts value i within some time.
func putOne(t *testing.T, q *nats.Queue[[]byte], i int) error {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	return q.Put(ctx, page(i))
}

// drain gets until the queue is empty.
func drain(t *testing.T, q *nats.Queue[[]byte]) (got []int) {
	t.Helper()
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		v, err := q.Get(ctx)
		cancel()
		if errors.Is(err, nats.ErrEmpty) {
			return got
		}
		testutil.NoError(t, err)
		got = append(got, int(v[0]))
	}
}

// A broker refuses values before its disk is full, says so, hands out what it has, and takes values
// again when that has made room.
func TestDisk_NearlyFullRefusesValues(t *testing.T) {
	t.Parallel() // it waits
	b, _ := onDisk(t, "64m", 24<<20)
	q := open[[]byte](t, connect(t, b.URL()), "pages", nats.QueueOptions{})
	var put []int
	var err error
	for i := 0; err == nil; i++ {
		if err = putOne(t, q, i); err == nil {
			put = append(put, i)
		}
		time.Sleep(20 * time.Millisecond) // slower than the broker looks
	}
	testutil.ErrorIs(t, err, nats.ErrStorage)
	testutil.ErrorContains(t, err, "127.0.0.1:", "free space on the broker's disk")
	if errors.Is(err, nats.ErrUncertain) || len(put) < 20 || !b.Stats().Full {
		t.Errorf("%d values, then %v; full: %v", len(put), err, b.Stats().Full)
	}
	if got := drain(t, q); !slices.Equal(got, put) {
		t.Errorf("got %v, put %v", got, put)
	}
	testutil.Eventually(t, func() bool { return !b.Stats().Full }, "the broker still refuses values")
	testutil.NoError(t, putOne(t, q, 200))
	if got := drain(t, q); !slices.Equal(got, []int{200}) {
		t.Errorf("got %v afterwards", got)
	}
}

// Another program fills the disk at once. What the broker has acknowledged stays, and it takes
// values again by itself when there is room.
func TestDisk_FilledByAnotherLosesNothing(t *testing.T) {
	t.Parallel() // it waits
	b, dir := onDisk(t, "64m", 8<<20)
	q := open[[]byte](t, connect(t, b.URL()), "pages", nats.QueueOptions{})
	var put, uncertain []int
	one := func(i int) error {
		err := putOne(t, q, i)
		if err == nil {
			put = append(put, i)
		} else if errors.Is(err, nats.ErrUncertain) {
			uncertain = append(uncertain, i)
		}
		return err
	}
	for i := range 10 {
		testutil.NoError(t, one(i))
	}
	waste := filepath.Join(dir, "waste")
	var filled sync.WaitGroup
	filled.Go(func() {
		if f, err := os.Create(waste); err == nil {
			for err == nil {
				_, err = f.Write(make([]byte, 1<<20))
			}
			f.Close()
		}
	})
	refused := 0
	for i := 10; refused < 3; i++ {
		if err := one(i); err != nil {
			refused++
			if !errors.Is(err, nats.ErrStorage) && !errors.Is(err, nats.ErrUncertain) {
				t.Errorf("put on a full disk: %v", err)
			}
		}
	}
	filled.Wait()
	testutil.ErrorIs(t, one(100), nats.ErrStorage) // by now the broker knows
	testutil.NoError(t, os.Remove(waste))
	next := 100
	testutil.Eventually(t, func() bool { next++; return one(next) == nil }, "the broker still refuses values")
	got := drain(t, q)
	for _, i := range put {
		if n := len(slices.DeleteFunc(slices.Clone(got), func(g int) bool { return g != i })); n != 1 {
			t.Errorf("value %d, which was acknowledged, came %d times", i, n)
		}
	}
	for _, i := range got {
		if !slices.Contains(put, i) && !slices.Contains(uncertain, i) {
			t.Errorf("value %d came, whose put failed", i)
		}
	}
	t.Logf("put %v, uncertain %v, got %v", put, uncertain, got)
}

// The disk of the node that leads a queue fills up. Another one leads it then, and the queue goes
// on. When there is room again, the node catches up.
func TestDisk_OfALeaderIsFull(t *testing.T) {
	t.Parallel() // it waits
	ctx := testutil.Context(t)
	small := t.TempDir()
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=300m"); err != nil {
		t.Skipf("a disk that fills up needs the right to mount one: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(small, syscall.MNT_DETACH) })
	starts, urls := cluster(t, small)
	for _, start := range starts {
		start().line(t)
	}
	url := strings.Join(urls[1:], ",")
	q := open[[]byte](t, connect(t, url), "pages", nats.QueueOptions{})
	js := library(t, url)
	lead(t, js, "node0")
	waste := filepath.Join(small, "waste")
	testutil.NoError(t, os.WriteFile(waste, make([]byte, 270<<20), 0o600))
	testutil.Eventually(t, func() bool {
		stream, consumer := state(t, js)
		return stream.Leader != "" && stream.Leader != "node0" && consumer.Leader != "" && consumer.Leader != "node0"
	}, "no other node leads")
	const values = 60
	for i := range values {
		testutil.NoError(t, q.Put(ctx, page(i)))
	}
	want := make([]int, values)
	for i := range want {
		want[i] = i
	}
	if got := drain(t, q); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	testutil.NoError(t, os.Remove(waste))
	testutil.Eventually(t, func() bool {
		stream, _ := state(t, js)
		return slices.ContainsFunc(stream.Replicas, func(r *jetstream.PeerInfo) bool {
			return r.Name == "node0" && r.Current && r.Lag == 0
		})
	}, "the node does not catch up")
	lead(t, js, "node0")
	testutil.NoError(t, q.Put(ctx, page(200)))
	if got := drain(t, q); !slices.Equal(got, []int{200}) {
		t.Errorf("got %v afterwards", got)
	}
}

// library returns JetStream's own client.
func library(t *testing.T, url string) jetstream.JetStream {
	t.Helper()
	nc, err := client.Connect(url)
	testutil.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	testutil.NoError(t, err)
	return js
}

// state returns the nodes of the stream and of the consumer of the queue pages, as far as they are
// known.
func state(t *testing.T, js jetstream.JetStream) (stream, consumer jetstream.ClusterInfo) {
	t.Helper()
	const name = "SHOAL_Q_pages"
	if s, err := js.Stream(t.Context(), name); err == nil && s.CachedInfo().Cluster != nil {
		stream = *s.CachedInfo().Cluster
	}
	if c, err := js.Consumer(t.Context(), name, "consumers"); err == nil && c.CachedInfo().Cluster != nil {
		consumer = *c.CachedInfo().Cluster
	}
	return stream, consumer
}

// lead has a node lead the stream and the consumer of the queue pages.
func lead(t *testing.T, js jetstream.JetStream, node string) {
	t.Helper()
	testutil.Eventually(t, func() bool {
		stream, consumer := state(t, js)
		for of, leader := range map[string]string{"STREAM.LEADER.STEPDOWN.SHOAL_Q_pages": stream.Leader,
			"CONSUMER.LEADER.STEPDOWN.SHOAL_Q_pages.consumers": consumer.Leader} {
			if leader != node {
				js.Conn().Request("$JS.API."+of, []byte(`{"placement":{"preferred":"`+node+`"}}`), time.Second)
			}
		}
		return stream.Leader == node && consumer.Leader == node
	}, "%s does not lead", node)
}
