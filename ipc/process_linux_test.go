package ipc_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A note is one value of a worker: the worker that put it, its number, and a block with the same in
// it.
type note struct {
	Sender, N int
	Blob      *blob
}

type putting struct {
	ID, Count int
	Out       *ipc.Sender[note]
}

// put puts notes until it has put Count, or for ever if that is 0.
var put = newRole("put", func(ctx context.Context, p putting) error {
	defer p.Out.Close()
	d, err := arena.Default()
	if err != nil {
		return err
	}
	for n := 0; p.Count == 0 || n < p.Count; n++ {
		b, err := makeBlob(d, text(p.ID, n))
		if err != nil {
			return err
		}
		err = p.Out.Put(ctx, note{p.ID, n, b})
		if err := errors.Join(err, b.Close()); err != nil {
			return err
		}
	}
	return nil
})

func text(id, n int) string { return fmt.Sprintf("%d/%d;%900d", id, n, n) }

type getting struct {
	In  *ipc.Receiver[note]
	Out *ipc.Sender[[2]int]
}

// get says for each note who put it and its number, after a look into its block.
var get = newRole("get", func(ctx context.Context, g getting) error {
	defer g.In.Close()
	defer g.Out.Close()
	for v, err := range g.In.All(ctx) {
		if err != nil {
			return err
		}
		want := text(v.Sender, v.N)
		if got := string(v.Blob.bytes()[:len(want)]); got != want {
			return fmt.Errorf("a block says %q, not %q", got, want)
		}
		if err := errors.Join(v.Blob.Close(), g.Out.Put(ctx, [2]int{v.Sender, v.N})); err != nil {
			return err
		}
	}
	return nil
})

func TestQueue_IsSharedByProcesses(t *testing.T) {
	d := shared(t)
	ctx := testutil.Context(t)
	q, seen := newQueue[note](t, 3), newQueue[[2]int](t, 64)
	const count = 500
	cmds := []*exec.Cmd{
		put.start(t, d, putting{0, count, q.Sender()}),
		put.start(t, d, putting{1, count, q.Sender()}),
		get.start(t, d, getting{q.Receiver(), seen.Sender()}),
		get.start(t, d, getting{q.Receiver(), seen.Sender()}),
	}
	testutil.NoError(t, q.Close())
	testutil.NoError(t, seen.Sender().Close())
	var got [2][]int
	for v, err := range seen.All(ctx) {
		testutil.NoError(t, err)
		got[v[0]] = append(got[v[0]], v[1])
	}
	wait(t, cmds...)
	for _, ns := range got {
		slices.Sort(ns)
		if len(ns) != count || len(slices.Compact(ns)) != count {
			t.Errorf("%d of %d arrived", len(ns), count)
		}
	}
}

// A bothTurner puts a value and takes one, again and again: with a value there for each of those
// that do, none may be told that the queue is empty.
type bothTurner struct{ Q *ipc.Queue[int] }

var putAndTake = newRole("put and take", func(ctx context.Context, b bothTurner) error {
	for n := range 50_000 {
		if err := b.Q.Put(ctx, n); err != nil {
			return err
		}
		if b.Q.Len() == 0 {
			return fmt.Errorf("turn %d: Len is 0 after a put", n)
		}
		if _, err := b.Q.TryGet(); err != nil {
			return fmt.Errorf("turn %d: %w", n, err)
		}
	}
	return nil
})

func TestQueue_TryGetFindsWhatWasPut(t *testing.T) {
	for _, capacity := range []int{4, ipc.Unbounded} {
		t.Run(fmt.Sprint("capacity ", capacity), func(t *testing.T) {
			d := shared(t)
			q := newQueue[int](t, capacity)
			var cmds []*exec.Cmd
			for range 3 {
				cmds = append(cmds, putAndTake.start(t, d, bothTurner{q}))
			}
			wait(t, cmds...)
		})
	}
}

func TestQueue_KeepsTheOrderOfAProcess(t *testing.T) {
	d := shared(t)
	ctx, q := testutil.Context(t), newQueue[note](t, 3)
	cmds := []*exec.Cmd{put.start(t, d, putting{0, 300, q.Sender()}), put.start(t, d, putting{1, 300, q.Sender()})}
	testutil.NoError(t, q.Sender().Close())
	var next [2]int
	for v, err := range q.All(ctx) {
		testutil.NoError(t, err)
		if v.N != next[v.Sender] {
			t.Fatalf("%d arrived, not %d", v.N, next[v.Sender])
		}
		next[v.Sender]++
		testutil.NoError(t, v.Blob.Close())
	}
	wait(t, cmds...)
	if next != [2]int{300, 300} {
		t.Errorf("%d arrived", next)
	}
}

func TestQueue_ReceivesWhatADeadProcessPut(t *testing.T) {
	d := shared(t)
	ctx := testutil.Context(t)
	q, err := ipc.NewQueue[note](ipc.Unbounded)
	testutil.NoError(t, err)
	defer q.Close()
	wait(t, put.start(t, d, putting{0, 1000, q.Sender()}))
	testutil.NoError(t, q.Sender().Close())
	n := 0
	for v, err := range q.All(ctx) {
		testutil.NoError(t, err)
		if want := text(0, n); string(v.Blob.bytes()[:len(want)]) != want {
			t.Fatalf("number %d says %.10q", n, v.Blob.bytes())
		}
		testutil.NoError(t, v.Blob.Close())
		n++
	}
	if n != 1000 {
		t.Errorf("%d arrived", n)
	}
}

// Python's consumers hang here, but for the one who takes the None.
func TestQueue_OneNilIsEnoughForFourProcesses(t *testing.T) {
	d := shared(t)
	ctx := testutil.Context(t)
	q := newQueue[*note](t, 4)
	var cmds []*exec.Cmd
	for range 4 {
		cmds = append(cmds, untilNil.start(t, d, q.Receiver()))
	}
	testutil.NoError(t, q.Receiver().Close())
	for range 10 {
		testutil.NoError(t, q.Put(ctx, &note{}))
	}
	testutil.NoError(t, q.Put(ctx, nil))
	testutil.NoError(t, q.Sender().Close())
	wait(t, cmds...)
}

var untilNil = newRole("until nil", func(ctx context.Context, in *ipc.Receiver[*note]) error {
	defer in.Close()
	for v, err := range in.All(ctx) {
		if v == nil || err != nil {
			return err
		}
	}
	return nil
})

var echo = newRole("echo", func(ctx context.Context, c *ipc.PipeEnd[[]byte, []byte]) error {
	defer c.Close()
	for v, err := range c.All(ctx) {
		if err := errors.Join(err, c.Send(ctx, v)); err != nil {
			return err
		}
	}
	return nil
})

func TestPipe_EndsWithItsProcess(t *testing.T) {
	d := shared(t)
	ctx := testutil.Context(t)
	a, b, err := ipc.Pipe[[]byte, []byte]()
	testutil.NoError(t, err)
	defer a.Close()
	cmd := echo.start(t, d, b)
	testutil.NoError(t, b.Close())
	for _, n := range []int{0, 10, 1000, 1 << 20} {
		testutil.NoError(t, a.Send(ctx, make([]byte, n)))
		if v, err := a.Recv(ctx); len(v) != n || err != nil {
			t.Errorf("%d of %d bytes came back, %v", len(v), n, err)
		}
	}
	testutil.NoError(t, cmd.Process.Kill())
	_, err = a.Recv(ctx) // waits, and nobody but the kernel says that it is over
	testutil.ErrorIs(t, err, ipc.ErrClosed)
	testutil.ErrorIs(t, a.Send(ctx, nil), ipc.ErrClosed)
	cmd.Wait()
}

// A storm kills workers between two values that arrive, wherever they are just then, and starts
// others.
func TestQueue_KilledWorkersTakeNothingWithThem(t *testing.T) {
	d := shared(t)
	ctx := testutil.Context(t)
	q, seen := newQueue[note](t, 5), newQueue[[2]int](t, 5)
	kills := 40
	if testing.Short() { // under an emulator a start takes a second
		kills = 15
	}
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	ids, killed := 0, 0 // killed are the getters: each may take the value with it that it was working on
	putter := func() *exec.Cmd { ids++; return put.start(t, d, putting{ids, 0, q.Sender()}) }
	getter := func() *exec.Cmd { return get.start(t, d, getting{q.Receiver(), seen.Sender()}) }
	puts, gets := []*exec.Cmd{putter(), putter()}, []*exec.Cmd{getter(), getter()}
	kill := func(c *exec.Cmd) { testutil.NoError(t, c.Process.Kill()); c.Wait() }

	once, newest := map[[2]int]bool{}, map[int]int{}
	arrive := func(v [2]int, err error) {
		testutil.NoError(t, err)
		if once[v] {
			t.Fatalf("%v arrived twice", v)
		}
		once[v] = true
		newest[v[0]] = max(newest[v[0]], v[1]+1)
	}
	for range kills {
		for range rng.IntN(40) {
			arrive(seen.Get(ctx))
		}
		i := rng.IntN(2)
		if rng.IntN(2) == 0 {
			kill(puts[i])
			puts[i] = putter()
		} else {
			kill(gets[i])
			killed++
			gets[i] = getter()
		}
	}
	for _, c := range puts {
		kill(c)
	}
	testutil.NoError(t, q.Close()) // now the getters drain it, and end
	testutil.NoError(t, seen.Sender().Close())
	for v, err := range seen.All(ctx) {
		arrive(v, err)
	}
	wait(t, gets...)
	lost := -len(once)
	for _, n := range newest {
		lost += n
	}
	t.Logf("%d arrived, %d were lost with %d receivers", len(once), lost, killed)
	if lost < 0 || lost > killed {
		t.Errorf("%d were lost", lost)
	}
}
