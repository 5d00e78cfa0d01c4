package nats_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/nats"
	"github.com/shoal-mp/shoal/nats/broker"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A path is a way to a broker that can be cut, and on which things can come to a stop.
type path struct {
	stopped sync.RWMutex // held while nothing arrives, and all goes on later
	l       net.Listener
	to      string
	mu      sync.Mutex
	conns   []net.Conn
	open    bool
	left    int // pieces to carry until the path is cut, if greater than 0
}

func newPath(t *testing.T, url string) *path {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testutil.NoError(t, err)
	p := &path{l: l, to: url[len("nats://"):], open: true}
	t.Cleanup(func() { l.Close(); p.cut() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			open, there := p.open, p.to
			p.mu.Unlock()
			to, err := net.Dial("tcp", there)
			if err != nil || !open {
				from.Close()
				if err == nil {
					to.Close()
				}
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, from, to)
			p.mu.Unlock()
			from.(*net.TCPConn).SetReadBuffer(64 << 10) // a large value does not find room in it
			for _, c := range [][2]net.Conn{{from, to}, {to, from}} {
				go func() {
					p.carry(c[0], c[1])
					c[0].Close()
				}()
			}
		}
	}()
	return p
}

// carry copies what comes, later if it is stopped.
func (p *path) carry(to io.Writer, from io.Reader) {
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		p.stopped.RLock()
		p.stopped.RUnlock() //lint:ignore SA2001 it waits until the path is not stopped, and no longer
		if err == nil {
			_, err = to.Write(b[:n])
		}
		if err != nil {
			return
		}
		p.carried()
	}
}

// carried counts a piece, and cuts the path if that was the last one before the next cut.
func (p *path) carried() {
	p.mu.Lock()
	p.left--
	due := p.left == 0
	if due {
		p.left = piecesToCut()
	}
	p.mu.Unlock()
	if due {
		p.cut()
	}
}

// piecesToCut returns a random number of pieces to carry before a cut. A large value of the tests
// is about 70 pieces.
func piecesToCut() int { return 30 + rand.IntN(300) }

// cutAgainAndAgain makes the path cut itself each time that it has carried some pieces, until stop
// is called. Time plays no part, so that a slow machine gets as far between two cuts as a fast one.
func (p *path) cutAgainAndAgain() (stop func()) {
	set := func(n int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.left = n
	}
	set(piecesToCut())
	return func() { set(0) }
}

// cut ends all connections, in the middle of whatever they carry.
func (p *path) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

func (p *path) close(open bool) {
	p.mu.Lock()
	p.open = open
	p.mu.Unlock()
	p.cut()
}

// The connections of a producer and of a consumer are cut again and again, in the middle of values
// large and small. Each value that was put comes exactly once to the consumer that acknowledges. A
// value whose acknowledgement has got no answer may come again, or not.
func TestQueue_ConnectionsAreCut(t *testing.T) {
	noBlocks(t)
	ctx, fail := context.WithCancelCause(testutil.ContextWithTimeout(t, 3*testutil.Timeout))
	defer fail(nil)
	b := start(t, broker.Options{MaxPayload: 256 << 10})
	in, out := newPath(t, b.URL()), newPath(t, b.URL())
	producer := open[*tensor.Tensor](t, connect(t, "nats://"+in.l.Addr().String()), "cut",
		nats.QueueOptions{MaxDeliveries: 1000,
			AckWait: time.Second}) // what a cut has swallowed comes back after it
	consumer := open[*tensor.Tensor](t, connect(t, "nats://"+out.l.Addr().String()), "cut", nats.QueueOptions{})
	const values = 100
	put := make(chan error, 1)
	go func() {
		for i := range values {
			n := 10
			if i%10 == 0 {
				n = 1 << 20
			}
			x := tensor.Full(tensor.Int32, float64(i), n)
			err := producer.Put(ctx, x)
			if err = errors.Join(err, x.Close()); err != nil {
				fail(fmt.Errorf("put %d: %w", i, err))
				put <- err
				return
			}
		}
		put <- producer.Finish(ctx)
	}()
	calmIn, calmOut := in.cutAgainAndAgain(), out.cutAgainAndAgain()
	calm := func() { calmIn(); calmOut() }
	defer calm()
	seen, uncertain := make(map[int32]int), make(map[int32]bool)
	for {
		d, err := consumer.Next(ctx)
		if errors.Is(err, nats.ErrClosed) {
			break
		}
		if err != nil {
			t.Fatalf("after %d values, and %d that are uncertain: %v", len(seen), len(uncertain), err)
		}
		v := tensor.Data[int32](d.Value)[0]
		testutil.NoError(t, d.Value.Close())
		switch err := d.Ack(ctx); {
		case err == nil:
			// A value that was on its way again when it was acknowledged comes, but is refused.
			if seen[v]++; seen[v] > 1 {
				t.Errorf("%d came again after it was acknowledged, and was not refused", v)
			}
		case errors.Is(err, nats.ErrUncertain):
			uncertain[v] = true
		case !errors.Is(err, nats.ErrExpired): // then it comes again
			t.Fatalf("value %d: %v", v, err)
		}
		if len(seen)+len(uncertain) >= values {
			calm() // to learn that a queue is at its end takes longer than from one cut to the next
		}
	}
	testutil.NoError(t, <-put)
	for v := range int32(values) {
		if seen[v] == 0 && !uncertain[v] {
			t.Errorf("%d never came, or was never acknowledged", v)
		}
	}
	if len(uncertain) > values/10 {
		t.Errorf("%d acknowledgements of %d had no answer", len(uncertain), values)
	}
	if s := count(t, consumer); s.Waiting+s.Taken+s.Dead != 0 {
		t.Errorf("the broker keeps %+v", s)
	}
}

// The way to a broker stops for good in the middle of a large value, and nothing ends the
// connection, as when a host loses its cable. The producer goes another way, and the value is there
// once.
func TestQueue_TheWayStopsForGood(t *testing.T) {
	t.Parallel()
	ctx := testutil.Context(t)
	b := start(t, broker.Options{})
	ways := map[string]*path{}
	for range 2 {
		p := newPath(t, b.URL())
		ways[p.l.Addr().String()] = p
	}
	c := connect(t, "nats://"+strings.Join(slices.Collect(maps.Keys(ways)), ",nats://"))
	q := open[*tensor.Tensor](t, c, "stopped", nats.QueueOptions{})
	x := tensor.Full(tensor.Int32, 7, 8<<20)
	defer x.Close()
	testutil.NoError(t, q.Put(ctx, x))
	first := ways[c.Host()]
	first.stopped.Lock()
	defer first.stopped.Unlock()
	begun := time.Now()
	testutil.NoError(t, q.Put(ctx, x))
	t.Logf("put after %v", time.Since(begun))
	if d := time.Since(begun); d > 16*time.Second {
		t.Errorf("it took %v", d)
	}
	if ways[c.Host()] == first {
		t.Error("the connection is the one that stopped")
	}
	if s := count(t, q); s.Waiting != 2 {
		t.Errorf("the broker keeps %+v", s)
	}
}

// The way of a consumer comes to a stop for longer than AckWait, and then goes on: its connection
// never notices. What it has taken, or is on its way to it, goes to another consumer meanwhile. So
// its acknowledgement is refused: a value counts for one consumer.
func TestDelivery_TheWayStopsForAWhile(t *testing.T) {
	for _, c := range []struct {
		name     string
		taken    bool // before the way stops
		prefetch int
	}{{"taken", true, 0}, {"on its way", false, 0}, {"taken ahead", true, 4}, {"on its way ahead", false, 4}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx := testutil.Context(t)
			b := start(t, broker.Options{})
			p := newPath(t, b.URL())
			const wait = time.Second
			here := open[int](t, connect(t, b.URL()), "stops", nats.QueueOptions{AckWait: wait, MaxDeliveries: 1000})
			far := open[int](t, connect(t, "nats://"+p.l.Addr().String()), "stops",
				nats.QueueOptions{Prefetch: c.prefetch})
			taken := make(chan *nats.Delivery[int], 1)
			go func() {
				d, err := far.Next(ctx)
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				taken <- d
			}()
			time.Sleep(2 * wait) // it waits for longer than AckWait, and lives
			var d *nats.Delivery[int]
			if c.taken {
				testutil.NoError(t, here.Put(ctx, 1))
				d = <-taken
			}
			p.stopped.Lock()
			open := sync.OnceFunc(p.stopped.Unlock)
			defer open()
			if !c.taken {
				testutil.NoError(t, here.Put(ctx, 1))
			}
			other, err := here.Next(ctx)
			testutil.NoError(t, err)
			if other.Attempt < 2 {
				t.Fatalf("the value did not go to the one whose way is stopped: attempt %d", other.Attempt)
			}
			testutil.NoError(t, other.Ack(ctx))
			open()
			if !c.taken {
				testutil.NoError(t, here.Put(ctx, 2)) // the first that it may have
				if d = <-taken; d.Value != 2 {
					t.Errorf("it has got %d, which another has acknowledged", d.Value)
				}
				testutil.NoError(t, d.Ack(ctx))
				return
			}
			if err := d.Ack(ctx); !errors.Is(err, nats.ErrExpired) {
				t.Errorf("its acknowledgement, after that of another: %v", err)
			}
		})
	}
}

// While there is no way to the broker, operations end as their contexts say, and go on later.
func TestQueue_NoWayToTheBroker(t *testing.T) {
	ctx := testutil.Context(t)
	p := newPath(t, start(t, broker.Options{}).URL())
	c := connect(t, "nats://"+p.l.Addr().String())
	q := open[int](t, c, "away", nats.QueueOptions{})
	s := openStore[int](t, c, "away-too", nats.StoreOptions{})
	p.close(false)
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	err := q.Put(short, 1)
	testutil.ErrorIs(t, err, nats.ErrUnreachable)
	testutil.ErrorContains(t, err, "127.0.0.1:", "check that the broker runs")
	_, err = q.Get(short)
	if err == nil {
		t.Error("it got a value from nowhere")
	}
	_, err = s.Set(short, "a", 1)
	if err == nil {
		t.Error("it set a value nowhere")
	}
	put := make(chan error, 1)
	go func() { put <- q.Put(ctx, 2) }()
	p.close(true)
	testutil.NoError(t, <-put)
	if v, err := q.Get(ctx); v != 2 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
}

// After a while without any way, a broker answers that has no leader for the queue yet. What waits
// has as much time for a leader as if nothing had been before.
func TestQueue_NoLeaderAfterNoWay(t *testing.T) {
	t.Parallel() // it waits
	ctx := testutil.Context(t)
	b, leaderless := start(t, broker.Options{}), start(t, broker.Options{NoJetStream: true})
	p := newPath(t, b.URL())
	const timeout = time.Second // four of them are how long it waits for a leader
	c, err := nats.Connect(ctx, "nats://"+p.l.Addr().String(), nats.Options{Timeout: timeout})
	testutil.NoError(t, err)
	defer c.Close()
	q := open[int](t, c, "leaderless", nats.QueueOptions{})
	p.close(false)
	done := make(chan error, 2)
	go func() { done <- q.Put(ctx, 1) }()
	go func() {
		_, err := q.Len(ctx)
		done <- err
	}()
	time.Sleep(4*timeout + timeout/2)
	p.mu.Lock()
	p.to = leaderless.URL()[len("nats://"):]
	p.mu.Unlock()
	p.close(true)
	testutil.Eventually(t, func() bool { return leaderless.Stats().Connections > 0 },
		"the client does not reach the broker without a leader")
	time.Sleep(timeout / 2)
	p.mu.Lock()
	p.to = b.URL()[len("nats://"):]
	p.mu.Unlock()
	p.cut()
	for range cap(done) {
		testutil.NoError(t, <-done)
	}
	if n, err := q.Len(ctx); n != 1 || err != nil {
		t.Errorf("%d values, %v", n, err)
	}
}

// A node that is left may have several addresses. The connection goes to another node, and not to
// the same one by another address.
func TestConn_LeavesANodeAndNotAnAddress(t *testing.T) {
	ctx := testutil.Context(t)
	left, other := start(t, broker.Options{}), start(t, broker.Options{})
	urls := other.URL()
	for range 3 {
		urls += ",nats://" + newPath(t, left.URL()).l.Addr().String()
	}
	for n := 0; n < 8; {
		c, err := nats.Connect(ctx, urls, nats.Options{})
		testutil.NoError(t, err)
		if at := "nats://" + c.Host(); at != other.URL() {
			n++
			c.Leave()
			testutil.Eventually(t, func() bool { return "nats://"+c.Host() == other.URL() },
				"the client does not move to another node")
		}
		testutil.NoError(t, c.Close())
	}

	// All addresses are those of one node: it stays there.
	c, err := nats.Connect(ctx, urls[len(other.URL())+1:], nats.Options{})
	testutil.NoError(t, err)
	defer c.Close()
	q := open[int](t, c, "one", nats.QueueOptions{})
	for range 3 {
		c.Leave()
		testutil.NoError(t, q.Put(ctx, 1))
	}
}

// The news that a queue is finished goes by while a consumer has no way to the broker. Once it has
// one, it learns the end before a question that waits for as long as it may is over, 20 s.
func TestQueue_FinishedWhileCutOff(t *testing.T) {
	ctx := testutil.Context(t)
	b := start(t, broker.Options{})
	p := newPath(t, b.URL())
	c := connect(t, "nats://"+p.l.Addr().String())
	for name, opts := range map[string]nats.QueueOptions{"plain": {}, "prefetch": {Prefetch: 8}} {
		t.Run(name, func(t *testing.T) {
			consumer := open[int](t, c, "cutoff-"+name, opts)
			producer := open[int](t, connect(t, b.URL()), "cutoff-"+name, nats.QueueOptions{})
			got := make(chan error, 1)
			soon, cancel := context.WithTimeout(ctx, 15*time.Second)
			defer cancel()
			go func() {
				_, err := consumer.Get(soon)
				got <- err
			}()
			p.close(false)
			testutil.NoError(t, producer.Finish(ctx))
			p.close(true)
			if err := <-got; !errors.Is(err, nats.ErrClosed) {
				t.Errorf("%v, where the queue is finished", err)
			}
		})
	}
}
