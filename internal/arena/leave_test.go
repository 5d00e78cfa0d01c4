package arena_test

import (
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A participant that leaves looks at the blocks of its own table: it gives back what it held, alone
// or with others, and leaves what others hold as it is.
func TestLeave_GivesBackItsOwnBlocks(t *testing.T) {
	everyWorld(t, 16<<20, func(t *testing.T, f *family) {
		ctx, a, b := testutil.Context(t), f.first, f.join()
		r, s, v := newRing(t, a, 4)
		theirs := open(t, b, r.Handle(), s, v)
		var blocks []arena.Handle
		for range 500 {
			blocks = append(blocks, alloc(t, a, 64, "a"))
		}
		for _, h := range blocks[100:200] {
			testutil.NoError(t, b.Import(h))
		}
		for range 300 {
			alloc(t, b, 64, "b")
		}
		sent := alloc(t, b, 64, "sent")
		testutil.NoError(t, theirs.Put(ctx, nil, []arena.Handle{sent}, true))
		testutil.NoError(t, b.Close())
		wantRest(t, a, 3+500+1)
		var m arena.Message
		testutil.NoError(t, r.Get(ctx, &m))
		if !slices.Equal(m.Blocks, []arena.Handle{sent}) {
			t.Errorf("blocks %v, want %v", m.Blocks, sent)
		}
		m.Discard()
		for _, h := range blocks {
			wantMark(t, a, h, "a")
			testutil.NoError(t, a.Release(h))
		}
		wantRest(t, a, 3)
	})
}
