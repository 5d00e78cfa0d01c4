package dist_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A note is a value that ranks send to each other.
type note struct {
	Step  int
	Names []string
	T     *tensor.Tensor
}

// FuzzLetter reads letters whose bytes are others, of a tensor, of a value with one, and of a value
// without: what is accepted can be opened as what it says it is, or as something else, and nothing
// of it is left.
func FuzzLetter(f *testing.F) {
	d, err := arena.Default()
	testutil.NoError(f, err)
	plan, err := codec.PlanOf[dist.Letter]()
	testutil.NoError(f, err)
	t, err := tensor.NewShared(tensor.Float32, 2, 3)
	testutil.NoError(f, err)
	defer t.Close()
	var kinds []codec.Message
	add := func(l dist.Letter, sent func(bool)) {
		var e codec.Encoder
		e.Reset(nil)
		testutil.NoError(f, plan.Encode(&e, l))
		m := e.Message()
		f.Add(uint8(len(kinds)), slices.Clone(m.Body))
		kinds = append(kinds, m)
		f.Cleanup(func() { e.Done(true); sent(true) })
	}
	add(dist.LetterOf(t), func(bool) {})
	l, done, err := dist.LetterOfValue(note{7, []string{"a"}, t})
	testutil.NoError(f, err)
	add(l, done)
	l, done, err = dist.LetterOfValue([]int{1, 2})
	testutil.NoError(f, err)
	add(l, done)
	blocks := d.Stats().Blocks
	f.Fuzz(func(t *testing.T, kind uint8, body []byte) {
		m := kinds[int(kind)%len(kinds)]
		m.Body = body
		read(t, plan, m, d, func(l dist.Letter) { checkOpened(dist.OpenLetter[note](l)) })
		read(t, plan, m, d, func(l dist.Letter) { dist.OpenLetter[[]int](l) })
		read(t, plan, m, d, func(l dist.Letter) { testutil.NoError(t, dist.CloseLetter(l)) })
		if now := d.Stats().Blocks; now != blocks {
			t.Fatalf("%d blocks are left", now-blocks)
		}
	})
}

// read decodes a letter as a queue does, and has use use it up.
func read(t *testing.T, plan *codec.Plan[dist.Letter], m codec.Message, d *arena.Domain, use func(l dist.Letter)) {
	var dec codec.Decoder
	dec.Reset(m, holder{d, m})
	l, err := plan.Decode(&dec)
	if err == nil {
		err = dec.Finish()
	}
	dec.Done(err == nil)
	if err != nil {
		return
	}
	if x := dist.TensorOf(l); x != nil {
		_ = x.String()
	}
	use(l)
}

func checkOpened(n note, err error) {
	if err == nil && n.T != nil {
		_ = n.T.String()
		n.T.Close()
	}
}

// A group that was dropped leaves no goroutine and no memory: nobody could close it any more.
func TestRegression_S3_3_AGroupThatNobodyClosesLeavesNothing(t *testing.T) {
	d, err := arena.Default()
	testutil.NoError(t, err)
	before, blocks := watchmen(), d.Stats().Blocks
	sendAndForget(t)
	testutil.EventuallyNoError(t, func() error {
		runtime.GC()
		if watchmen() > before || d.Stats().Blocks > blocks {
			return fmt.Errorf("%d watchmen and %d blocks are left", watchmen()-before, d.Stats().Blocks-blocks)
		}
		return nil
	})
}

// sendAndForget leaves two groups that have sent and received to the garbage collector.
func sendAndForget(t *testing.T) {
	g, err := dist.NewGroup(2)
	testutil.NoError(t, err)
	q, err := ipc.NewQueue[*dist.Group](1)
	testutil.NoError(t, err)
	defer q.Close()
	testutil.NoError(t, q.Put(t.Context(), g))
	other, err := q.Get(t.Context())
	testutil.NoError(t, err)
	testutil.NoError(t, g.Join(0))
	testutil.NoError(t, other.Join(1))
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	testutil.NoError(t, dist.SendValue(ctx, g, 1, 0, 5))
	if v, _, err := dist.RecvValue[int](ctx, other, 0, 0); v != 5 || err != nil {
		t.Fatal(v, err)
	}
	if watchmen() == 0 {
		t.Fatal("nobody watches, so the test sees nothing")
	}
	runtime.KeepAlive(g) // or they are dropped before
	runtime.KeepAlive(other)
}

// watchmen counts the goroutines that watch a group.
func watchmen() int {
	b := make([]byte, 4<<20)
	return bytes.Count(b[:runtime.Stack(b, true)],
		[]byte("created by github.com/shoal-mp/shoal/dist.(*member).startWatchman in"))
}
