package arena_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/test/testutil"
)

// lookup returns what has the name; the caller discards it.
func lookup(t testing.TB, d *arena.Domain, name string) *arena.Message {
	t.Helper()
	m := new(arena.Message)
	testutil.NoError(t, d.Lookup(name, m))
	return m
}

func TestName_OutlivesItsBinder(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		a, b := f.first, f.join()
		h := alloc(t, b, 100, "by b")
		testutil.NoError(t, b.Bind(context.Background(), "n", []byte("meta"), []arena.Handle{h}))
		testutil.NoError(t, b.Abandon())
		reap(t, a)
		for range 2 { // as often as one likes
			m := lookup(t, a, "n")
			if string(m.Body) != "meta" || len(m.Blocks) != 1 || m.Blocks[0] != h {
				t.Errorf("looked up %q with %v", m.Body, m.Blocks)
			}
			wantMark(t, a, m.Blocks[0], "by b")
			m.Discard()
		}
		wantRest(t, a, 2)
		testutil.NoError(t, a.Unlink("n"))
		wantRest(t, a, 0)
	})
}

func TestName_HoldersGoOnAfterUnlink(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		a, b := f.first, f.join()
		h := alloc(t, a, 100, "first")
		testutil.NoError(t, a.Bind(context.Background(), "n", nil, []arena.Handle{h}))
		testutil.NoError(t, a.Release(h))
		m := lookup(t, b, "n")
		testutil.NoError(t, a.Unlink("n"))
		second := alloc(t, a, 100, "second")
		testutil.NoError(t, a.Bind(context.Background(), "n", nil, []arena.Handle{second}))
		wantMark(t, b, m.Blocks[0], "first")
		m.Discard()
		m = lookup(t, b, "n")
		wantMark(t, b, m.Blocks[0], "second")
		m.Discard()
		testutil.NoError(t, b.Unlink("n"))
		testutil.NoError(t, a.Release(second))
		wantRest(t, a, 0)
	})
}

func TestName_HasManyBlocksAndLongBodies(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		a, b := f.first, f.join()
		var hs []arena.Handle
		for i := range 9 {
			hs = append(hs, alloc(t, a, 100, fmt.Sprint(i)))
		}
		long := bytes.Repeat([]byte("long"), 5000)
		name := strings.Repeat("n", arena.MaxName)
		testutil.NoError(t, a.Bind(context.Background(), "few", long, hs[:1]))
		testutil.NoError(t, a.Bind(context.Background(), name, []byte("12345678"), hs))
		testutil.NoError(t, a.Bind(context.Background(), "none", nil, nil))
		for n, want := range map[string]struct {
			body   []byte
			blocks int
		}{"few": {long, 1}, name: {[]byte("12345678"), 9}, "none": {nil, 0}} {
			m := lookup(t, b, n)
			if !bytes.Equal(m.Body, want.body) || !slices.Equal(m.Blocks, hs[:want.blocks]) {
				t.Errorf("%.10s: %.20q with %v", n, m.Body, m.Blocks)
			}
			m.Discard()
		}
		if got := b.Names(); !slices.Equal(got, []string{"few", name, "none"}) {
			t.Errorf("names %q", got)
		}
		for _, n := range b.Names() {
			testutil.NoError(t, b.Unlink(n))
		}
		for _, h := range hs {
			testutil.NoError(t, a.Release(h))
		}
		wantRest(t, a, 0)
	})
}

func TestName_IsRefused(t *testing.T) {
	d := newDomain(t, 8<<20)
	var m arena.Message
	wantErrs := func(err error, want ...error) {
		t.Helper()
		for _, w := range want {
			if !errors.Is(err, w) {
				t.Errorf("error %v is not %v", err, w)
			}
		}
	}
	wantErrs(d.Lookup("n", &m), arena.ErrNotExist, fs.ErrNotExist)
	wantErrs(d.Unlink("n"), arena.ErrNotExist)
	for _, name := range []string{"", strings.Repeat("n", arena.MaxName+1), "\xff"} {
		wantErrs(d.Bind(context.Background(), name, nil, nil), arena.ErrName)
	}
	h := alloc(t, d, 10, "")
	wantErrs(d.Bind(context.Background(), "n", nil, []arena.Handle{arena.HandleAt(arena.Index(h), 7)}), arena.ErrStale)
	testutil.NoError(t, d.Bind(context.Background(), "n", nil, []arena.Handle{h}))
	wantErrs(d.Bind(context.Background(), "n", nil, nil), arena.ErrExist, fs.ErrExist)
	wantErrs(d.Bind(context.Background(), "n", make([]byte, 300), nil), arena.ErrExist)
	wantErrs(d.Lookup("m", &m), arena.ErrNotExist)
	testutil.NoError(t, d.Release(h))
	wantErrs(d.Bind(context.Background(), "o", nil, []arena.Handle{h}), arena.ErrClosed)
	wantErrs(d.Bind(context.Background(), "o", make([]byte, 9<<20), nil), arena.ErrNoSpace)
	testutil.NoError(t, d.Unlink("n"))
	wantRest(t, d, 0)
	testutil.NoError(t, d.Close())
	wantErrs(d.Bind(context.Background(), "n", nil, nil), arena.ErrClosed)
	wantErrs(d.Lookup("n", &m), arena.ErrClosed)
	wantErrs(d.Unlink("n"), arena.ErrClosed)
}

func TestBoard_GrowsToItsLimit(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		d := f.first
		for i := range arena.MaxNames {
			testutil.NoError(t, d.Bind(context.Background(), fmt.Sprint("name ", i), []byte{byte(i)}, nil))
		}
		if err := d.Bind(context.Background(), "one more", nil, nil); !errors.Is(err, arena.ErrTooManyNames) {
			t.Errorf("one name more than there is room: %v", err)
		}
		m := lookup(t, f.join(), "name 1999")
		if m.Body[0] != 1999&0xff {
			t.Errorf("body %v", m.Body)
		}
		m.Discard()
		for i := range arena.MaxNames {
			testutil.NoError(t, d.Unlink(fmt.Sprint("name ", i)))
		}
		wantRest(t, d, 0)
	})
}

// Of many that bind a name at once one does; each of its messages is seen whole or not at all.
func TestName_IsBoundOnce(t *testing.T) {
	everyWorld(t, 16<<20, func(t *testing.T, f *family) {
		domains := []*arena.Domain{f.first, f.join(), f.join()}
		var bound [4]atomic.Int64
		var wg sync.WaitGroup
		for i := range 12 {
			d := domains[i%3]
			wg.Go(func() {
				r := rand.New(rand.NewPCG(1, uint64(i)))
				for range 300 {
					n := r.IntN(len(bound))
					if err := juggle(d, fmt.Sprint(n), r.IntN(3), &bound[n]); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		for i := range bound {
			err := f.first.Unlink(fmt.Sprint(i))
			if n := bound[i].Load(); n != 0 && n != 1 || (n == 1) != (err == nil) {
				t.Errorf("name %d was bound %d times more than unlinked, and unlink says %v", i, n, err)
			}
		}
		testutil.Eventually(t, func() bool { return !slices.ContainsFunc(domains, (*arena.Domain).GetsGoOn) },
			"a get goes on")
		wantRest(t, f.first, 0)
	})
}

// juggle binds, looks up or unlinks a name. What it binds says the name at the start of its block
// and in its body.
func juggle(d *arena.Domain, name string, what int, bound *atomic.Int64) error {
	switch what {
	case 0:
		h, err := d.Alloc(64)
		if err != nil {
			return err
		}
		p, err := d.Bytes(h)
		if err != nil {
			return err
		}
		copy(p, name)
		err = d.Bind(context.Background(), name, []byte(name), []arena.Handle{h})
		if err == nil {
			bound.Add(1)
		} else if errors.Is(err, arena.ErrExist) {
			err = nil
		}
		return errors.Join(err, d.Release(h))
	case 1:
		err := d.Unlink(name)
		if err == nil {
			bound.Add(-1)
		} else if errors.Is(err, arena.ErrNotExist) {
			err = nil
		}
		return err
	}
	var m arena.Message
	if err := d.Lookup(name, &m); err != nil {
		if errors.Is(err, arena.ErrNotExist) {
			err = nil
		}
		return err
	}
	defer m.Discard()
	p, err := d.Bytes(m.Blocks[0])
	if err == nil && (string(m.Body) != name || string(p[:len(name)]) != name) {
		err = fmt.Errorf("name %s has body %q and a block with %q", name, m.Body, p[:len(name)])
	}
	return err
}

func init() {
	actors["juggler"] = func(d *arena.Domain, args []string) error {
		if len(args) > 0 { // unrelated
			var err error
			if d, err = arena.Join(context.Background(), args[0], tokenArg(args[1])); err != nil {
				return err
			}
		}
		var bound atomic.Int64
		say("ready")
		for {
			if err := juggle(d, fmt.Sprint(rand.IntN(4)), rand.IntN(3), &bound); err != nil {
				say("error %v", err)
				return err
			}
		}
	}
}

// Processes, of which half have joined by the socket, are killed in the middle of anything they do
// to names.
func TestName_SurvivesKills(t *testing.T) {
	d := newDomain(t, 16<<20)
	l := listen(t, d, "")
	var jugglers []*actor
	begin := func(i int) {
		if i%2 == 0 {
			jugglers = append(jugglers, start(t, d, "juggler"))
		} else {
			jugglers = append(jugglers, start(t, nil, "juggler", l.Addr(), tokenText(l.Token())))
		}
		if s := jugglers[len(jugglers)-1].hear(); s != "ready" {
			t.Fatal(s)
		}
	}
	for i := range 3 {
		begin(i)
	}
	var bound atomic.Int64
	for i := range 20 {
		for range 50 {
			testutil.NoError(t, juggle(d, fmt.Sprint(rand.IntN(4)), rand.IntN(3), &bound))
		}
		jugglers[0].kill()
		jugglers = jugglers[1:]
		begin(i)
	}
	for _, a := range jugglers {
		a.kill()
	}
	testutil.Eventually(t, func() bool { return d.Stats().Reaped == 23 }, "somebody is not reaped")
	for n := range 4 {
		testutil.NoError(t, juggle(d, fmt.Sprint(n), 2, &bound))
		testutil.NoError(t, juggle(d, fmt.Sprint(n), 1, &bound))
	}
	if names := d.Names(); len(names) != 0 {
		t.Errorf("names %q are left", names)
	}
	reap(t, d)
	wantRest(t, d, 0)
}
