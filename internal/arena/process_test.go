package arena_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/test/testutil"
)

func init() {
	actors["hold"] = actHold
	actors["echo"] = actEcho
	actors["storm"] = actStorm
}

// actHold holds blocks of its own and says so.
func actHold(d *arena.Domain, _ []string) error {
	for range 10 {
		if _, err := d.Alloc(100_000); err != nil {
			return err
		}
	}
	say("%d", d.Seat())
	untilKilled()
	return d.Close()
}

// openAs opens the ring and the ends that a test named in arguments.
func openAs(d *arena.Domain, ring, senders, receivers string) (*arena.Ring, error) {
	for _, s := range []string{ring, senders, receivers} {
		if err := d.Import(handleArg(s)); err != nil {
			return nil, err
		}
	}
	return d.OpenRing(handleArg(ring))
}

// actEcho sends every message of its first ring back by its second.
func actEcho(d *arena.Domain, args []string) error {
	in, err := openAs(d, args[0], args[1], args[2])
	if err != nil {
		return err
	}
	out, err := openAs(d, args[3], args[4], args[5])
	if err != nil {
		return err
	}
	say("ready")
	ctx, m := context.Background(), new(arena.Message)
	for {
		switch err := in.Get(ctx, m); {
		case errors.Is(err, arena.ErrFinished):
			return d.Close()
		case err != nil:
			return err
		}
		if err := out.Put(ctx, m.Body, m.Blocks, true); err != nil {
			return err
		}
		m.Done()
	}
}

// actStorm allocates, sends and receives until it is killed.
func actStorm(d *arena.Domain, args []string) error {
	r, err := openAs(d, args[0], args[1], args[2])
	if err != nil {
		return err
	}
	say("ready")
	m := new(arena.Message)
	for i := 0; ; i++ {
		h, err := d.Alloc(i % 10_000)
		if err != nil {
			return err
		}
		err = r.TryPut(make([]byte, i%400), []arena.Handle{h}, true)
		if errors.Is(err, arena.ErrFull) {
			err = d.Release(h)
		}
		if err != nil {
			return fmt.Errorf("put: %w", err)
		}
		if err := r.TryGet(m); err == nil {
			m.Discard()
		} else if !errors.Is(err, arena.ErrEmpty) {
			return fmt.Errorf("get: %w", err)
		}
	}
}

func ringArgs(r *arena.Ring, senders, receivers arena.Handle) []string {
	return []string{argOf(r.Handle()), argOf(senders), argOf(receivers)}
}

func TestProcess_ExchangesBlocks(t *testing.T) {
	d := newDomain(t, 16<<20)
	ctx := testutil.Context(t)
	there, s1, v1 := newRing(t, d, 4)
	back, s2, v2 := newRing(t, d, 4)
	other := start(t, d, "echo", append(ringArgs(there, s1, v1), ringArgs(back, s2, v2)...)...)
	other.hear()
	var m arena.Message
	for i := range 200 {
		mark := fmt.Sprint("message ", i)
		testutil.NoError(t, there.Put(ctx, make([]byte, i*5), []arena.Handle{alloc(t, d, 1000*i+64, mark)}, true))
		testutil.NoError(t, back.Get(ctx, &m))
		if len(m.Body) != i*5 {
			t.Fatalf("body of %d bytes, want %d", len(m.Body), i*5)
		}
		wantMark(t, d, m.Blocks[0], mark)
		m.Discard()
	}
	there.Finish()
	other.finish()
	wantRest(t, d, 6)
}

func TestDeath_OfAProcessIsNoticedByAnyone(t *testing.T) {
	d := newDomain(t, 64<<20)
	var all []*actor
	for range 6 {
		a := start(t, d, "hold")
		a.hear()
		all = append(all, a)
	}
	living := 7
	for _, group := range [][]int{{5}, {1, 2}, {4, 3, 0}} { // the last one, neighbours, all but the first participant
		for _, i := range group {
			all[i].kill()
		}
		living -= len(group)
		untilReaped(t, d)
		if s := d.Stats(); s.Participants != living || s.Blocks != 10*(living-1) {
			t.Errorf("%d participants have %d blocks, want %d and %d", s.Participants, s.Blocks, living, 10*(living-1))
		}
	}
	wantRest(t, d, 0)
	// A reaper that is killed itself may not have counted whom it buried.
	testutil.Eventually(t, func() bool { n := d.Stats().Reaped; return n > 0 && n <= 6 }, "no death is counted")
}

func TestDeath_NotThatOfAProcessThatCloses(t *testing.T) {
	d := newDomain(t, 64<<20)
	a := start(t, d, "hold")
	a.hear()
	a.finish()
	wantRest(t, d, 0)
	if s := d.Stats(); s.Reaped != 0 || s.Participants != 1 {
		t.Errorf("%+v", s)
	}
}

func TestDeath_KillStorm(t *testing.T) {
	d := newDomain(t, 16<<20)
	r, s, v := newRing(t, d, 8)
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	for range rounds {
		a, b := start(t, d, "storm", ringArgs(r, s, v)...), start(t, d, "storm", ringArgs(r, s, v)...)
		a.hear()
		b.hear()
		a.kill()
		b.kill()
	}
	untilReaped(t, d)
	reap(t, d)
	if n := d.Stats().Reaped; n < rounds || n > 2*rounds { // b may have buried a, and not have counted it
		t.Errorf("%d deaths of %d are counted", n, 2*rounds)
	}
	testutil.NoError(t, d.Audit())
	var m arena.Message
	for r.TryGet(&m) == nil {
		m.Discard()
	}
	wantRest(t, d, 3)
}

func BenchmarkReap64KiBlocks(b *testing.B) {
	const blocks = 64 << 10
	d := newDomain(b, 64<<20)
	for b.Loop() {
		b.StopTimer()
		other, err := attachAgain(d)
		testutil.NoError(b, err)
		for range blocks {
			if _, err := other.Alloc(64); err != nil {
				b.Fatal(err)
			}
		}
		testutil.NoError(b, other.Abandon())
		b.StartTimer()
		for d.Stats().Blocks != 0 { // the domain may have noticed by itself, and be at it
			_, err := d.Reap()
			testutil.NoError(b, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/blocks, "ns/block")
}

// TestProcess_VerifiesNormalWork runs processes that check each change of a word, and kills one.
func TestProcess_VerifiesNormalWork(t *testing.T) {
	t.Setenv("SHOAL_DEBUG", "verify")
	d := newDomain(t, 32<<20)
	ctx := testutil.Context(t)
	there, s1, v1 := newRing(t, d, 4)
	back, s2, v2 := newRing(t, d, 4)
	storm := start(t, d, "storm", ringArgs(there, s1, v1)...)
	storm.hear()
	time.Sleep(100 * time.Millisecond)
	storm.kill()
	untilReaped(t, d)
	m := new(arena.Message)
	for there.TryGet(m) == nil {
		m.Discard()
	}
	other := start(t, d, "echo", append(ringArgs(there, s1, v1), ringArgs(back, s2, v2)...)...)
	other.hear()
	for i := range 300 {
		testutil.NoError(t, there.Put(ctx, make([]byte, i), []arena.Handle{alloc(t, d, 1000, "m")}, true))
		testutil.NoError(t, back.Get(ctx, m))
		m.Discard()
	}
	there.Finish()
	other.finish()
	wantRest(t, d, 6)
}
