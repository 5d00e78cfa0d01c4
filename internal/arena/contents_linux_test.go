package arena_test

import (
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/test/testutil"
)

func init() { actors["holder"] = actHolder }

// actHolder holds a block until it is killed.
func actHolder(d *arena.Domain, _ []string) error {
	h, err := d.Alloc(1 << 20)
	if err != nil {
		return err
	}
	d.Describe(h, arena.Contents{DType: "float32", Shape: "[512 512]"})
	say("%s", argOf(h))
	untilKilled()
	return nil
}

// debugged returns another participant of d, in this process, that keeps lifetimes.
func debugged(t *testing.T, d *arena.Domain) *arena.Domain {
	t.Helper()
	t.Setenv("SHOAL_DEBUG", "lifetime")
	defer os.Unsetenv("SHOAL_DEBUG") // until t.Setenv restores what was before the test
	return attachDomain(t, d)
}

// A program that keeps no lifetimes tells an observer what other processes hold that do.
func TestContents_AreToldOfOtherProcesses(t *testing.T) {
	d := newDomain(t, 16<<20)
	before := d.Observe()
	if s := before.Summary; s.Tellers != 0 || s.Sites != nil || s.Shapes != nil {
		t.Fatalf("nobody keeps lifetimes: %+v", s)
	}
	one, two := debugged(t, d), debugged(t, d)
	h := alloc(t, one, 1<<20, "shared")
	one.Describe(h, arena.Contents{DType: "uint8", Shape: "[1048576]", Raw: true})
	one.Describe(h, arena.Contents{DType: "float32", Shape: "[512 512]"})
	testutil.NoError(t, two.Import(h))
	testutil.NoError(t, d.Import(h))
	own := alloc(t, two, 100, "own")
	two.Describe(own, arena.Contents{DType: "int64", Shape: "[12]"})
	mine := alloc(t, d, 2<<20, "of a process that tells nothing")

	s := d.Observe().Summary
	if s.Tellers != 2 || s.Untold != 0 || len(s.Shapes) != 2 || len(s.DTypes) != 2 {
		t.Errorf("%d processes tell of %+v, %+v, and not of %d", s.Tellers, s.Shapes, s.DTypes, s.Untold)
	}
	if c := s.Shapes[0]; c.DType != "float32" || c.Shape != "[512 512]" || c.Blocks != 1 || c.Bytes != 1<<20 {
		t.Errorf("one block that two processes hold: %+v", c)
	}
	if c := s.DTypes["int64"]; c.Blocks != 1 {
		t.Errorf("%+v", s.DTypes)
	}
	for _, v := range s.Largest {
		switch v.Block {
		case h.String():
			if v.DType != "float32" || v.Shape != "[512 512]" || !strings.Contains(v.Stack, "arena_test.alloc") {
				t.Errorf("%+v", v)
			}
		case mine.String():
			if v.DType != "" || v.Stack != "" {
				t.Errorf("nobody tells of it: %+v", v)
			}
		}
	}
	for _, c := range s.Sites { // one by which both were allocated, one of the import
		if c.Blocks != 1 && !(c.Blocks == 2 && strings.Contains(c.Stack, "arena_test.alloc")) {
			t.Errorf("%+v", c)
		}
	}
	if n := d.Stats().Blocks; n != before.Stats.Blocks+3 || d.Observe().Stats.Blocks != n {
		t.Errorf("%d blocks, %d before three were allocated", n, before.Stats.Blocks)
	}
	if one, two := one.Holdings(), two.Holdings(); len(one) != 1 || len(two) != 2 {
		t.Errorf("what their tables lie in is counted as well: %v, %v", one, two)
	}

	testutil.NoError(t, one.Release(h))
	if s := d.Observe().Summary; len(s.Shapes) != 1 || s.Shapes[0].DType != "int64" {
		t.Errorf("who has described it has closed it: %+v", s.Shapes)
	}
	for _, p := range []*arena.Domain{one, two} {
		testutil.NoError(t, p.Close())
	}
	testutil.NoError(t, d.Release(h))
	testutil.NoError(t, d.Release(mine))
	testutil.Eventually(t, func() bool { return d.Stats().Blocks == before.Stats.Blocks }, "not all of them is free")
	if s := d.Observe().Summary; s.Tellers != 0 || s.Shapes != nil {
		t.Errorf("all have closed: %+v", s)
	}
}

func TestContents_EndWithAProcessThatIsKilled(t *testing.T) {
	d := newDomain(t, 16<<20)
	blocks := d.Stats().Blocks
	t.Setenv("SHOAL_DEBUG", "lifetime")
	a := start(t, d, "holder")
	h := handleArg(a.hear())
	testutil.NoError(t, d.Import(h))
	s := d.Observe().Summary
	if s.Tellers != 1 || len(s.Shapes) != 1 || len(s.Sites) == 0 ||
		!strings.Contains(s.Sites[0].Stack, "arena_test.actHolder") {
		t.Errorf("%d processes tell of %+v at %+v", s.Tellers, s.Shapes, s.Sites)
	}
	a.kill()
	untilReaped(t, d)
	if s := d.Observe().Summary; s.Tellers != 0 || s.Shapes != nil || d.Stats().Blocks != blocks+1 {
		t.Errorf("after its death %+v of %d blocks, want %d", s, d.Stats().Blocks, blocks+1)
	}
	testutil.NoError(t, d.Release(h))
}

func TestContents_SayWhatTheyHadNoRoomFor(t *testing.T) {
	d := newDomain(t, 64<<20)
	p := debugged(t, d)
	const more = 10
	var all []arena.Handle
	for range arena.ContentsRecords + more {
		all = append(all, alloc(t, p, 8, "small"))
	}
	if s := d.Observe().Summary; s.Tellers != 1 || s.Untold < more || s.Untold > 2*more {
		t.Errorf("%d processes have no room for %d blocks, want %d", s.Tellers, s.Untold, more)
	}
	for _, h := range all {
		testutil.NoError(t, p.Release(h))
	}
	h := alloc(t, p, 8, "small")
	p.Describe(h, arena.Contents{DType: "bool", Shape: "[8]"})
	if s := d.Observe().Summary; len(s.Shapes) != 1 || s.Shapes[0].DType != "bool" {
		t.Errorf("there is room again: %+v", s.Shapes)
	}
}

func TestContents_GarbageIsRead(t *testing.T) {
	d := newDomain(t, 16<<20)
	p := debugged(t, d)
	for range 100 {
		h := alloc(t, p, 100, "block")
		p.Describe(h, arena.Contents{DType: "float32", Shape: "[25]"})
	}
	words := p.ContentsWords()
	var g sync.WaitGroup
	stop := make(chan struct{})
	g.Go(func() {
		for r := rand.New(rand.NewPCG(3, 4)); ; {
			select {
			case <-stop:
				return
			default:
			}
			v := r.Uint64() >> r.IntN(64)
			if r.IntN(2) == 0 {
				v = ^v
			}
			i := r.IntN(len(words))
			if r.IntN(4) == 0 {
				i = r.IntN(1000) // the head and the records that are in use
			}
			if i == 0 && r.IntN(4) > 0 { // most of the time it has contents
				v = words.At(0)
			}
			words.Set(i, v)
			if r.IntN(100) == 0 {
				words.Set(0, arena.ContentsForm)
				words.Set(1, uint64(p.Seat()))
			}
		}
	})
	seen := 0
	for range 300 {
		s := d.Observe().Summary
		seen += s.Tellers
		if s.Tellers > 1 || len(s.Shapes) > 32 || len(s.Sites) > 32 {
			t.Fatalf("%d tell of %d shapes, %d sites", s.Tellers, len(s.Shapes), len(s.Sites))
		}
		for _, c := range s.Shapes {
			if len(c.DType)+len(c.Shape) > 48 || c.Blocks > 101 || c.Bytes < 0 {
				t.Fatalf("%+v", c)
			}
		}
	}
	close(stop)
	g.Wait()
	if seen == 0 {
		t.Error("garbage was never read")
	}
}
