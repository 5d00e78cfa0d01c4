package ipc_test

import (
	"errors"
	"testing"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/shm"
	"github.com/shoal-mp/shoal/wire"
)

// A parcel has everything in it that takes something from a message.
type parcel struct {
	Name   string
	Blobs  []*blob
	Queue  *ipc.Queue[int]
	Cond   *ipc.Cond
	Array  *ipc.Array[int16]
	Conn   *ipc.Conn[string]
	More   map[string]parcel
	Sender ipc.Sender[parcel]
}

// FuzzMessage puts arbitrary bytes, and blocks that are a ring, its tokens and plain ones, into a queue's ring. Who
// gets them as a parcel gets it whole or a typed error, and either way nothing is left.
func FuzzMessage(f *testing.F) {
	d := local(f)
	inner := newQueue[int](f, 1)
	b := newBlob(f, d, "x")
	f.Cleanup(func() { check(f, b.Close()) })
	tools := newToolbox(f)
	f.Add(encodeSeed(f, parcel{Name: "a", Blobs: []*blob{b, b}, Queue: inner, Cond: tools.Cond, Array: tools.Array}), uint8(7))
	f.Add([]byte{0x96}, uint8(1))
	f.Add([]byte{}, uint8(0))
	plan, err := wire.PlanOf[*ipc.Queue[parcel]]()
	check(f, err)
	q := newQueue[parcel](f, 1)
	var enc wire.Encoder
	enc.Reset(nil)
	check(f, plan.Encode(&enc, q))
	f.Cleanup(func() { enc.Done(true) })
	ring, err := d.OpenRing(enc.Message().Blocks[0])
	check(f, err)
	f.Cleanup(ring.Close)
	table := append([]shm.Handle{b.h}, blocksOf(f, inner)...)
	table = append(append(table, blocksOf(f, tools.Cond)...), blocksOf(f, tools.Array)...)
	f.Fuzz(func(t *testing.T, body []byte, blocks uint8) {
		before := d.Stats().Blocks
		check(t, ring.TryPut(body, table[:min(int(blocks), len(table))], false))
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
	for _, want := range []error{wire.ErrFormat, wire.ErrOverflow, wire.ErrTooDeep, wire.ErrTooLong, wire.ErrNoBlock, ipc.ErrType, ipc.ErrNotEnd, ipc.ErrNotObject} {
		if errors.Is(err, want) {
			return true
		}
	}
	return false
}

func (p parcel) close(t *testing.T) {
	for _, b := range p.Blobs {
		if b != nil {
			check(t, b.Close())
		}
	}
	if p.Queue != nil {
		check(t, p.Queue.Close())
	}
	if p.Cond != nil {
		check(t, p.Cond.Close())
	}
	if p.Array != nil {
		check(t, p.Array.Close())
	}
	if p.Conn != nil {
		check(t, p.Conn.Close())
	}
	for _, m := range p.More {
		m.close(t)
	}
	check(t, p.Sender.Close())
}

// blocksOf returns the blocks of a value, in the order in which its message has them.
func blocksOf[T any](t testing.TB, v T) []shm.Handle {
	plan, err := wire.PlanOf[T]()
	check(t, err)
	var enc wire.Encoder
	enc.Reset(nil)
	check(t, plan.Encode(&enc, v))
	defer enc.Done(true)
	return enc.Message().Blocks
}

func encodeSeed(t testing.TB, p parcel) []byte {
	carrier := newQueue[parcel](t, 1)
	p.Sender = *carrier.Sender()
	plan, err := wire.PlanOf[parcel]()
	check(t, err)
	var enc wire.Encoder
	enc.Reset(nil)
	check(t, plan.Encode(&enc, p))
	defer enc.Done(true)
	return enc.Message().Body
}
