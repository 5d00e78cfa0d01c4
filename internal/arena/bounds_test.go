package arena_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/test/testutil"
)

// Each word that is read from the header and the table of blocks is garbage once: what fails says
// which word it was.
func TestGarbage_IsAnErrorThatNamesTheWord(t *testing.T) {
	allocs := func(d *arena.Domain, _ arena.Handle) error { _, err := d.Alloc(100_000); return err }
	headers := func(d *arena.Domain, _ arena.Handle) error { _, err := d.Alloc(0); return err }
	reads := func(d *arena.Domain, h arena.Handle) error { _, err := d.Bytes(h); return err }
	opens := func(d *arena.Domain, h arena.Handle) error { _, err := d.OpenSync(h, arena.FormMutex); return err }
	for name, c := range map[string]struct {
		word  string // of the domain, or of the block that is used
		value uint64
		use   func(*arena.Domain, arena.Handle) error
		says  string
	}{
		"count beyond the headers":     {"blocks", 1 << 40, headers, "count of blocks"},
		"count beyond the pages":       {"blocks", 1 << 20, headers, "count of blocks"},
		"count zero":                   {"blocks", 0, headers, "count of blocks"},
		"headers not whole":            {"ready", 1, headers, "header's count of"},
		"addresses beyond the end":     {"brk", 1 << 60, allocs, "end of the addresses"},
		"class beyond the last":        {"ext", 255 << 40, reads, "extent of a block"},
		"offset beyond the end":        {"ext", 20<<40 | 1<<39, reads, "extent of a block"},
		"committed beyond the class":   {"committed", 1 << 50, reads, "committed length of a block"},
		"a cell of no bytes":           {"committed", 0, opens, "committed length of a cell"},
		"budget by a lane that idles":  {"budget", 1<<24 | 1<<14 | 5, allocs, "the budget: "},
		"budget by the lane of nobody": {"budget", 1<<24 | 1<<14 | 200*64, allocs, "the budget: "},
		"names of a block that is no ring": {"names", 0, func(d *arena.Domain, h arena.Handle) error {
			return d.Bind(context.Background(), "a name", nil, nil)
		}, "board of names"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDomain(t, 8<<20)
			s, err := d.NewSync(arena.SyncOptions{Form: arena.FormMutex, Bytes: 8000})
			testutil.NoError(t, err)
			v := c.value
			if c.word == "names" {
				v = uint64(s.Handle())
			}
			restore := d.Scribble(s.Handle(), c.word, v)
			err = c.use(d, s.Handle())
			restore()
			if !errors.Is(err, arena.ErrCorrupt) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want ErrCorrupt that names %q", err, c.says)
			}
			s.Close()
			testutil.NoError(t, d.Release(s.Handle()))
		})
	}
}

// A head or a slot far from where it can be does not lead an operation from slot to slot for ever.
func TestGarbage_ARingThatIsFarOnIsNotWalked(t *testing.T) {
	for name, c := range map[string]struct {
		word  string
		value uint64
		get   bool
	}{
		"a slot far on, got":     {"slot", 1 << 40, true},
		"a slot far on, put":     {"slot", 1 << 40, false},
		"a slot two on, got":     {"slot", 2, true},
		"a slot two on, put":     {"slot", 2, false},
		"a head far behind":      {"head", (1<<44 - 3) << 2, true},
		"a head far behind, put": {"head", 3<<62 | (1<<44-1<<42)<<2, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDomain(t, 8<<20)
			r, senders, receivers := newRing(t, d, 4)
			for c.word == "head" && !c.get && r.TryPut([]byte("before"), nil, false) == nil {
				// a put looks at the head of a ring that is full
			}
			r.ScribbleRing(c.word, c.value)
			var err error
			if c.get {
				err = r.TryGet(new(arena.Message))
			} else {
				err = r.TryPut([]byte("hello"), nil, false)
			}
			full := c.word == "head" && !c.get && err == arena.ErrFull // which a get says the reason of
			if !full && (!errors.Is(err, arena.ErrCorrupt) || !strings.Contains(err.Error(), "word of a ring's slot")) {
				t.Errorf("%v", err)
			}
			for _, h := range []arena.Handle{r.Handle(), senders, receivers} {
				testutil.NoError(t, d.Release(h))
			}
		})
	}
}

// A stamp of the budget by somebody who lives, and goes on with other things, is waited for as long
// as the caller's context wants.
func TestGarbage_AllocWaitEndsWithItsContext(t *testing.T) {
	d := newDomain(t, 8<<20)
	other, err := attachAgain(d)
	testutil.NoError(t, err)
	defer other.Close()
	restore := d.Scribble(0, "budget", 1<<24|1<<14|uint64(other.Seat()*arena.LanesPerSeat))
	defer restore()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	ended := make(chan error)
	go func() { _, err := d.AllocWait(ctx, 1<<20); ended <- err }()
	select {
	case err := <-ended:
		wantIs(t, err, context.DeadlineExceeded)
	case <-testutil.Context(t).Done():
		t.Fatal("it waits on")
	}
}

// The budget's stamp is taken for garbage in the end, though its lane is that of a participant that
// lives.
func TestGarbage_AllocEndsWhereNobodyEndsTheStamp(t *testing.T) {
	defer arena.SetStampTime(300 * time.Millisecond)()
	d := newDomain(t, 8<<20)
	other, err := attachAgain(d)
	testutil.NoError(t, err)
	defer other.Close()
	restore := d.Scribble(0, "budget", 1<<24|1<<14|uint64(other.Seat()*arena.LanesPerSeat))
	defer restore()
	_, err = d.Alloc(1 << 20)
	wantIs(t, err, arena.ErrCorrupt)
}

// Lists that lead beyond the headers, or in circles, are made anew.
func TestGarbage_ListsAreMadeAnew(t *testing.T) {
	d := newDomain(t, 8<<20)
	const size = 100_000
	h, err := d.Alloc(size)
	testutil.NoError(t, err)
	testutil.NoError(t, d.Release(h)) // larger than what a lane keeps for itself: it hangs on the list
	d.ScribbleList(size, 1<<31)
	again, err := d.Alloc(size)
	testutil.NoError(t, err)
	if arena.Index(again) != arena.Index(h) {
		t.Errorf("%v instead of %v: the list has lost its block", again, h)
	}
	testutil.NoError(t, d.Release(again))
	wantRest(t, d, 0)
}

// A deferred Close, a finalizer and a reaper drop their errors: what they have met is logged, once.
func TestGarbage_IsLoggedWhereNobodyHearsOfIt(t *testing.T) {
	var mu sync.Mutex
	var said strings.Builder
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return said.Write(p)
	}), nil)))
	defer slog.SetDefault(old)
	arena.ForgetLogged()
	d := newDomain(t, 8<<20)
	for range 3 {
		h := alloc(t, d, 8000, "x")
		restore := d.Scribble(h, "ext", 255<<40)
		d.Release(h) // which nobody checks
		restore()
	}
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return strings.Count(said.String(), "the class of a free block is")
	}
	testutil.Eventually(t, func() bool { return count() > 0 }, "nothing is logged")
	if n := count(); n != 1 || !strings.Contains(said.String(), "restart them") {
		t.Errorf("logged %d times: %s", n, &said)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
