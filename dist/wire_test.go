package dist_test

import (
	"errors"
	"testing"

	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// holder takes blocks as a queue does: those of a message that this process holds.
type holder struct {
	d *arena.Domain
	m codec.Message
}

func (h holder) Take(n int) (arena.Handle, error) { return h.m.Blocks[n], h.d.Import(h.m.Blocks[n]) }

// receive decodes a Group from a message with other bytes.
func receive(t testing.TB, body []byte, m codec.Message) (g *dist.Group, err error) {
	d, err := arena.Default()
	testutil.NoError(t, err)
	plan, err := codec.PlanOf[*dist.Group]()
	testutil.NoError(t, err)
	m.Body = body
	var dec codec.Decoder
	dec.Reset(m, holder{d, m})
	g, err = plan.Decode(&dec)
	dec.Done(err == nil)
	return g, err
}

// parts marshal what they are made of as a Group does.
type parts struct {
	barrier, life *ipc.Barrier
	ranks         *ipc.Array[int64]
	memory        *ipc.Memory
}

func (p parts) marshal(e *codec.Encoder) error {
	e.ArrayLen(6)
	e.Uint(0)
	err := errors.Join(codec.Encode(e, p.barrier), codec.Encode(e, p.life), codec.Encode(e, p.ranks),
		codec.Encode(e, p.memory))
	return errors.Join(err, e.Parcel(codec.Message{})) // of the inboxes
}

func TestGroup_OfPartsOfDifferentOnesIsRefused(t *testing.T) {
	barrier, err := ipc.NewBarrier(2)
	testutil.NoError(t, err)
	life, err := ipc.NewBarrier(3)
	testutil.NoError(t, err)
	ranks, err := ipc.NewArray[int64](5)
	testutil.NoError(t, err)
	memory, err := ipc.NewMemory("", 1<<20)
	testutil.NoError(t, err)
	huge, err := ipc.NewBarrier(1000)
	testutil.NoError(t, err)
	for _, p := range []parts{{barrier, life, ranks, memory}, {barrier, barrier, ranks, memory},
		{huge, life, ranks, memory}} {
		var e codec.Encoder
		e.Reset(nil)
		testutil.NoError(t, p.marshal(&e))
		m := e.Message()
		if _, err := receive(t, m.Body, m); !errors.Is(err, codec.ErrFormat) {
			t.Error(err)
		}
		e.Done(true)
	}
	testutil.NoError(t, errors.Join(barrier.Close(), life.Close(), ranks.Close(), memory.Close(), huge.Close()))
	nothingIsLeft(t)
}

// nothingIsLeft wants all memory back that groups of this process had.
func nothingIsLeft(t testing.TB) {
	t.Helper()
	d, err := arena.Default()
	testutil.NoError(t, err)
	if n := d.Stats().Blocks; n > 0 {
		t.Errorf("%d blocks are left", n)
	}
}

func TestGroup_LeavesNothingWhenClosed(t *testing.T) {
	t.Run("work", func(t *testing.T) {
		groups, ctx := handles(t, 2), testutil.Context(t)
		all(t, together(groups,
			func(g *dist.Group) error { return g.AllReduce(ctx, dist.Sum, ones(3).To(tensor.Float64)) }))
	})
	nothingIsLeft(t)
}

func FuzzGroup(f *testing.F) {
	g, err := dist.NewGroup(2)
	testutil.NoError(f, err)
	defer g.Close()
	var e codec.Encoder
	e.Reset(nil)
	plan, err := codec.PlanOf[*dist.Group]()
	testutil.NoError(f, err)
	testutil.NoError(f, plan.Encode(&e, g))
	defer func() { e.Done(true) }()
	m := e.Message()
	f.Add(m.Body)
	f.Fuzz(func(t *testing.T, body []byte) {
		g, err := receive(t, body, m)
		if err == nil && g != nil {
			testutil.NoError(t, g.Close())
		}
	})
}
