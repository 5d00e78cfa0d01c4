package ipc_test

import (
	"errors"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

// An encodedValue has everything in it that takes something from a message.
type encodedValue struct {
	Name   string
	Blobs  []*blob
	Queue  *ipc.Queue[int]
	Cond   *ipc.Cond
	Array  *ipc.Array[int16]
	Conn   *ipc.PipeEnd[string, string]
	More   map[string]encodedValue
	Sender ipc.Sender[encodedValue]
	Memory *ipc.Memory
	List   *ipc.ShareableList
}

// FuzzQueue_Message puts arbitrary bytes, and blocks that are a ring, its tokens and plain ones,
// into a queue's ring. A receiver of them as an encoded value gets it whole or a typed error, and
// either way nothing is left.
func FuzzQueue_Message(f *testing.F) {
	d := local(f)
	inner := newQueue[int](f, 1)
	b := newBlob(f, d, "x")
	f.Cleanup(func() { testutil.NoError(f, b.Close()) })
	tools := newToolbox(f)
	f.Add(encodeSeed(f, encodedValue{Name: "a", Blobs: []*blob{b, b}, Queue: inner, Cond: tools.Cond,
		Array: tools.Array}), uint8(7))
	f.Add([]byte{0x96}, uint8(1))
	f.Add([]byte{}, uint8(0))
	plan, err := codec.PlanOf[*ipc.Queue[encodedValue]]()
	testutil.NoError(f, err)
	q := newQueue[encodedValue](f, 1)
	var enc codec.Encoder
	enc.Reset(nil)
	testutil.NoError(f, plan.Encode(&enc, q))
	f.Cleanup(func() { enc.Done(true) })
	ring, err := d.OpenRing(enc.Message().Blocks[0])
	testutil.NoError(f, err)
	f.Cleanup(ring.Close)
	table := append([]arena.Handle{b.h}, blocksOf(f, inner)...)
	table = append(append(table, blocksOf(f, tools.Cond)...), blocksOf(f, tools.Array)...)
	f.Fuzz(func(t *testing.T, body []byte, blocks uint8) {
		before := d.Stats().Blocks
		testutil.NoError(t, ring.TryPut(body, table[:min(int(blocks), len(table))], false))
		v, err := q.TryGet()
		if err == nil {
			v.close(t)
		} else if !typed(err) {
			t.Errorf("an error of no type: %v", err)
		}
		if s := d.Stats(); s.Blocks != before || s.InTransit != 0 {
			t.Errorf("%d blocks became %d, and %d references are in messages", before, s.Blocks, s.InTransit)
		}
	})
}

func typed(err error) bool {
	for _, want := range []error{codec.ErrFormat, codec.ErrOverflow, codec.ErrTooDeep, codec.ErrTooLong,
		codec.ErrNoBlock, ipc.ErrType, ipc.ErrNotEnd,
		ipc.ErrNotObject, ipc.ErrSize, ipc.ErrNotList} {
		if errors.Is(err, want) {
			return true
		}
	}
	return false
}

func (p encodedValue) close(t *testing.T) {
	for _, b := range p.Blobs {
		if b != nil {
			testutil.NoError(t, b.Close())
		}
	}
	if p.Queue != nil {
		testutil.NoError(t, p.Queue.Close())
	}
	if p.Cond != nil {
		testutil.NoError(t, p.Cond.Close())
	}
	if p.Array != nil {
		testutil.NoError(t, p.Array.Close())
	}
	if p.Conn != nil {
		testutil.NoError(t, p.Conn.Close())
	}
	for _, m := range p.More {
		m.close(t)
	}
	testutil.NoError(t, p.Sender.Close())
	if p.Memory != nil {
		testutil.NoError(t, p.Memory.Close())
	}
	if p.List != nil {
		values(p.List)
		testutil.NoError(t, p.List.Close())
	}
}

// FuzzShareableList_Bytes reads and changes lists in memory that holds anything.
func FuzzShareableList_Bytes(f *testing.F) {
	local(f)
	l, err := ipc.NewShareableList(1, "two", []byte{3}, nil, true, 6.5)
	testutil.NoError(f, err)
	f.Add(append([]byte(nil), listMemory(f, l).Bytes()...))
	f.Add([]byte{})
	f.Cleanup(func() { testutil.NoError(f, l.Close()) })
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ipc.NewMemory("", len(b))
		testutil.NoError(t, err)
		defer m.Close()
		copy(m.Bytes(), b)
		l, err := passAs[*ipc.ShareableList](t, m)
		if err != nil {
			testutil.ErrorIs(t, err, ipc.ErrNotList)
			return
		}
		defer l.Close()
		for i := range min(l.Len(), 100) {
			if _, err := l.At(i); err != nil {
				testutil.ErrorIs(t, err, ipc.ErrNotList)
			}
			if err := l.Set(i, "text"); err != nil {
				testutil.ErrorIs(t, err, ipc.ErrSize)
			} else if v, err := l.At(i); v != "text" || err != nil {
				t.Errorf("set to text, and it is %v, %v", v, err)
			}
		}
	})
}

// passAs sends v and receives it as another type.
func passAs[U, T any](t testing.TB, v T) (U, error) {
	from, err := codec.PlanOf[T]()
	testutil.NoError(t, err)
	to, err := codec.PlanOf[U]()
	testutil.NoError(t, err)
	d, err := arena.Default()
	testutil.NoError(t, err)
	var enc codec.Encoder
	enc.Reset(nil)
	testutil.NoError(t, from.Encode(&enc, v))
	defer enc.Done(true)
	var dec codec.Decoder
	dec.Reset(enc.Message(), importer{d, enc.Message().Blocks})
	u, err := to.Decode(&dec)
	dec.Done(err == nil)
	return u, err
}

// listMemory returns the memory of a list.
func listMemory(t testing.TB, l *ipc.ShareableList) *ipc.Memory {
	m, err := passAs[*ipc.Memory](t, l)
	testutil.NoError(t, err)
	t.Cleanup(func() { testutil.NoError(t, m.Close()) })
	return m
}

// blocksOf returns the blocks of a value, in the order in which its message has them.
func blocksOf[T any](t testing.TB, v T) []arena.Handle {
	plan, err := codec.PlanOf[T]()
	testutil.NoError(t, err)
	var enc codec.Encoder
	enc.Reset(nil)
	testutil.NoError(t, plan.Encode(&enc, v))
	defer enc.Done(true)
	return enc.Message().Blocks
}

func encodeSeed(t testing.TB, p encodedValue) []byte {
	carrier := newQueue[encodedValue](t, 1)
	p.Sender = *carrier.Sender()
	plan, err := codec.PlanOf[encodedValue]()
	testutil.NoError(t, err)
	var enc codec.Encoder
	enc.Reset(nil)
	testutil.NoError(t, plan.Encode(&enc, p))
	defer enc.Done(true)
	return enc.Message().Body
}
