package dist_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestRegression_S3_3_SendAndRecv(t *testing.T) {
	groups, ctx := handles(t, 3), testutil.Context(t)
	for _, n := range lengths {
		for _, dt := range append(slices.Clone(kinds), tensor.Bool, tensor.Complex64) {
			all(t, together(groups, func(g *dist.Group) error {
				next, before := (g.Rank()+1)%3, (g.Rank()+2)%3
				mine := operand(dt, g.Rank(), n)
				if err := g.Send(ctx, next, n, mine); err != nil { // all send first: nobody waits
					return err
				}
				mine.Zero() // the copy has gone
				got := tensor.New(dt, n)
				from, err := g.Recv(ctx, before, n, got)
				if err == nil && from != before {
					err = fmt.Errorf("from %d, not %d", from, before)
				}
				want(t, "what the rank before has sent", got, operand(dt, before, n))
				return err
			}))
		}
	}
	var rows *tensor.Tensor = operand(tensor.Float32, 7, 12).View(3, 4)
	testutil.NoError(t, groups[0].Send(ctx, 1, 0, rows.T()))
	got := tensor.New(tensor.Float32, 3, 4)
	_, err := groups[1].Recv(ctx, dist.AnyRank, 0, got.T())
	testutil.NoError(t, err)
	want(t, "a view into a view", got, rows)
}

func TestRegression_S3_3_TagsAndOrderOfReceives(t *testing.T) {
	groups, ctx := handles(t, 2), testutil.Context(t)
	number := func(x float64) *tensor.Tensor { return tensor.Full(tensor.Int64, x, 1) }
	for i := range 6 {
		testutil.NoError(t, groups[0].Send(ctx, 1, i%2, number(float64(i))))
	}
	for _, c := range []struct{ tag, want int }{{1, 1}, {1, 3}, {0, 0}, {1, 5}, {0, 2}, {0, 4}} {
		got := number(-1)
		_, err := groups[1].Recv(ctx, 0, c.tag, got)
		testutil.NoError(t, err)
		if got.Item() != float64(c.want) {
			t.Errorf("tag %d: got %v, want %d", c.tag, got, c.want)
		}
	}
	// Receives that wait at the same time get what comes in the order in which they began to wait.
	works, got := make([]*dist.Work, 50), make([]*tensor.Tensor, 50)
	for i := range works {
		got[i] = number(-1)
		works[i] = groups[1].Irecv(ctx, dist.AnyRank, i%3, got[i])
	}
	var sent []*dist.Work
	for i := range works {
		sent = append(sent, groups[0].Isend(ctx, 1, i%3, number(float64(i))))
	}
	for i, w := range works {
		testutil.NoError(t, sent[i].Wait(ctx))
		testutil.NoError(t, w.Wait(ctx))
		if got[i].Item() != float64(i) || w.Source() != 0 || sent[i].Source() != -1 {
			t.Errorf("receive %d got %v from %d", i, got[i], w.Source())
		}
	}
}

// More than an inbox has room for waits, in order, until it is received; it holds no call of all
// ranks up.
func TestRegression_S3_3_SendsThatWaitForRoom(t *testing.T) {
	groups, ctx := handles(t, 2), testutil.Context(t)
	const n = 200
	var sent []*dist.Work
	for i := range n {
		sent = append(sent, groups[0].Isend(ctx, 1, 0, tensor.Full(tensor.Int32, float64(i), 1)))
	}
	select {
	case <-sent[n-1].Done():
		t.Error("an inbox has no end")
	default:
	}
	soon, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
	defer cancel()
	blamed(t, groups[0].Send(soon, 1, 0, ones(1)), context.DeadlineExceeded, 1)
	all(t, together(groups, func(g *dist.Group) error { return g.AllReduce(ctx, dist.Sum, ones(5)) }))
	got := tensor.New(tensor.Int32, 1)
	for i := range n {
		_, err := groups[1].Recv(ctx, 0, 0, got)
		testutil.NoError(t, err)
		if got.Item() != float64(i) {
			t.Fatalf("letter %d is %v", i, got)
		}
	}
	for _, w := range sent {
		testutil.NoError(t, w.Wait(ctx))
	}
}

func TestRegression_S3_3_SendsThatCannotBe(t *testing.T) {
	groups, ctx := handles(t, 2), testutil.Context(t)
	g, x := groups[0], ones(2)
	recv := func(src, tag int) error { _, err := g.Recv(ctx, src, tag, x); return err }
	for _, c := range []struct{ err, want error }{
		{g.Send(ctx, 0, 0, x), dist.ErrRank}, {g.Send(ctx, 2, 0, x), dist.ErrRank},
		{g.Send(ctx, -1, 0, x), dist.ErrRank}, {g.Send(ctx, 1, -1, x), dist.ErrTag},
		{recv(0, 0), dist.ErrRank}, {recv(2, 0), dist.ErrRank}, {recv(-2, 0), dist.ErrRank},
		{recv(1, -1), dist.ErrTag}, {recv(dist.AnyRank, -1), dist.ErrTag},
		{newGroup(t, 2).Send(ctx, 1, 0, x), dist.ErrRank}, {new(dist.Group).Send(ctx, 1, 0, x), dist.ErrClosed},
		{dist.SendValue(ctx, g, 1, 0, func() {}), nil},
	} {
		if c.err == nil || c.want != nil && !errors.Is(c.err, c.want) {
			t.Errorf("%v, want %v", c.err, c.want)
		}
	}
	for _, other := range []*tensor.Tensor{ones(3), ones(2, 1), ones(2).To(tensor.Float64)} {
		testutil.NoError(t, groups[1].Send(ctx, 0, 0, other))
		if err := recv(1, 0); !errors.Is(err, dist.ErrMismatch) ||
			!strings.Contains(err.Error(), fmt.Sprint(other.Shape())) {
			t.Error(err)
		}
	}
	testutil.NoError(t, dist.SendValue(ctx, groups[1], 0, 0, "text"))
	if err := recv(1, 0); !errors.Is(err, dist.ErrMismatch) || !strings.Contains(err.Error(), "string") {
		t.Error(err)
	}
	testutil.NoError(t, groups[1].Send(ctx, 0, 0, x))
	if _, _, err := dist.RecvValue[string](ctx, g, 1, 0); !errors.Is(err, dist.ErrMismatch) {
		t.Error(err)
	}
	testutil.NoError(t, dist.SendValue(ctx, groups[1], 0, 0, 7))
	if _, _, err := dist.RecvValue[string](ctx, g, 1, 0); !errors.Is(err, dist.ErrMismatch) ||
		!strings.Contains(err.Error(), "int") {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err := g.Recv(ended, 1, 0, x)
	blamed(t, err, context.Canceled, 1)
	testutil.NoError(t, groups[1].Send(ctx, 0, 0, ones(2)))
	testutil.NoError(t, recv(1, 0)) // nothing is broken
	all(t, together(groups, func(g *dist.Group) error { return g.Barrier(ctx) }))
}

// A thing has a tensor, which travels by reference.
type thing struct {
	Name  string
	Parts map[string][]*tensor.Tensor
}

func TestRegression_S3_3_ValuesAreSent(t *testing.T) {
	t.Run("work", func(t *testing.T) {
		groups, ctx := handles(t, 2), testutil.Context(t)
		x, y := ones(4), ones(3)
		part := x.Narrow(0, 1, 2)
		all(t, together(groups, func(g *dist.Group) error {
			if g.Rank() == 0 {
				return dist.SendValue(ctx, g, 1, 3, thing{"a", map[string][]*tensor.Tensor{"x": {x, part}}})
			}
			v, from, err := dist.RecvValue[thing](ctx, g, dist.AnyRank, 3)
			if err != nil {
				return err
			}
			if v.Name != "a" || from != 0 {
				t.Errorf("%+v from %d", v, from)
			}
			v.Parts["x"][1].Fill(5)
			want(t, "memory that both have", x, tensor.FromSlice([]float32{1, 5, 5, 1}, 4))
			for _, p := range v.Parts["x"] {
				testutil.NoError(t, p.Close())
			}
			return nil
		}))
		testutil.NoError(t, errors.Join(x.Close(), part.Close()))
		// What nobody receives is given back: by the inbox, and by the call that had it in hand.
		testutil.NoError(t, dist.SendValue(ctx, groups[0], 1, 1, y))
		testutil.NoError(t, y.Close())
		testutil.NoError(t, dist.SendValue(ctx, groups[0], 1, 2, 1))
		_, _, err := dist.RecvValue[int](ctx, groups[1], 0, 2)
		testutil.NoError(t, err)
		testutil.NoError(t, groups[0].Send(ctx, 1, 9, ones(3)))
	})
	nothingIsLeft(t)
}

func TestRegression_S3_3_APartnerThatLeaves(t *testing.T) {
	groups, ctx := handles(t, 4), testutil.Context(t)
	testutil.NoError(t, groups[1].Send(ctx, 0, 0, ones(1)))
	waiting := groups[0].Irecv(ctx, 1, 1, ones(1))
	other := groups[0].Irecv(ctx, 2, 0, ones(1))
	any := groups[3].Irecv(ctx, dist.AnyRank, 7, ones(1))
	testutil.NoError(t, groups[1].Close())
	blamed(t, waiting.Wait(ctx), dist.ErrLeft, 1)
	from, err := groups[0].Recv(ctx, 1, 0, ones(1)) // what it had sent is there
	testutil.NoError(t, err)
	if from != 1 {
		t.Error(from)
	}
	_, err = groups[0].Recv(ctx, 1, 0, ones(1))
	blamed(t, err, dist.ErrLeft, 1)
	blamed(t, groups[0].Send(ctx, 1, 0, ones(1)), dist.ErrLeft, 1)
	testutil.NoError(t, groups[2].Send(ctx, 0, 0, ones(1))) // among those who stay all goes on
	testutil.NoError(t, other.Wait(ctx))
	testutil.NoError(t, groups[2].Close())
	testutil.NoError(t, groups[0].Close())
	blamed(t, any.Wait(ctx), dist.ErrLeft, 0, 1, 2)
	if err := groups[0].Send(ctx, 3, 0, ones(1)); !errors.Is(err, dist.ErrClosed) {
		t.Error(err)
	}
	ends := groups[3].Irecv(ctx, 2, 0, ones(1))
	testutil.NoError(t, groups[3].Close())
	if err := ends.Wait(ctx); !errors.Is(err, dist.ErrClosed) && !errors.Is(err, dist.ErrLeft) {
		t.Error(err)
	}
}
