package tcp_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/crossing"
	"github.com/shoal-mp/shoal/internal/link"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A recorded is a stream of which the other side was recorded.
type recorded struct{ *bytes.Reader }

func (recorded) Write(b []byte) (int, error)      { return len(b), nil }
func (recorded) Close() error                     { return nil }
func (recorded) SetReadDeadline(time.Time) error  { return nil }
func (recorded) SetWriteDeadline(time.Time) error { return nil }

// A taker gives out blocks with a reference for each time.
type taker struct {
	d      *arena.Domain
	blocks []arena.Handle
}

func (t taker) Take(i int) (arena.Handle, error) { return t.blocks[i], t.d.Retain(t.blocks[i]) }

// stale is in the bytes of a block that did not come, and in no others.
const stale = 0xEE

// FuzzTensor has a receiver hear arbitrary bytes as tensors. No tensor that it accepts shows a byte
// that did not come, and no block is left.
func FuzzTensor(f *testing.F) {
	frame := func(begin, end uint64, body []byte) []byte {
		head := binary.LittleEndian.AppendUint32(nil, 1)
		for _, n := range []uint64{crossing.Copied, begin, end} {
			head = binary.LittleEndian.AppendUint64(head, n)
		}
		head = append(head, body...)
		b := append(binary.LittleEndian.AppendUint32(nil, uint32(len(head))), 'V')
		return append(append(b, head...), make([]byte, end-begin)...)
	}
	for _, seed := range [][]byte{frame(0, 16, float32s(8, 4)), frame(0, 16, float32s(8, 5)),
		frame(8, 16, float32s(8, 2)), frame(0, 68, float32s(8, 17)), frame(0, 12, float32s(0, 3, 4)),
		frame(4, 60, []byte{0x96, 0, 8, 0xd4, 'S', 0, 1, 0x92, 2, 2, 0x92, 10, 3})} {
		f.Add(seed)
	}
	d, err := arena.Default()
	if err != nil {
		f.Skip(err)
	}
	plan, err := codec.PlanOf[*tensor.Tensor]()
	testutil.NoError(f, err)
	f.Fuzz(func(t *testing.T, stream []byte) {
		before := d.Stats().Blocks
		conn := link.NewConn(recorded{bytes.NewReader(stream)}, 1<<16)
		m, blocks, err := crossing.Recv(context.Background(), conn, 'V')
		if err == nil {
			show(t, d, plan, m, blocks)
			crossing.Release(m.Blocks)
		}
		conn.Close()
		if n := d.Stats().Blocks; n != before {
			t.Errorf("%d blocks became %d", before, n)
		}
	})
}

// show reads a tensor out of a message, and all that the tensor shows.
func show(t *testing.T, d *arena.Domain, plan *codec.Plan[*tensor.Tensor], m codec.Message,
	blocks []crossing.Block) {
	for i, b := range blocks {
		if b.Number != crossing.Copied {
			return // it is nobody's
		}
		all, err := d.Bytes(m.Blocks[i])
		testutil.NoError(t, err)
		if len(all) > 1<<20 {
			return // it takes long to fill
		}
		for k := range all {
			all[k] = stale
		}
		clear(all[b.Begin:b.End])
	}
	if crossing.Check(m, blocks, func(i int) int { return i }) != nil {
		return
	}
	var dec codec.Decoder
	dec.Reset(m, taker{d, m.Blocks})
	x, err := plan.Decode(&dec)
	if err == nil {
		err = dec.Finish()
	}
	dec.Done(err == nil)
	if err != nil || x == nil {
		return
	}
	defer x.Close()
	if x.Numel() > 1<<16 {
		return // an expanded one
	}
	y := x.Clone()
	defer y.Close()
	if slices.Contains(tensor.Bytes(y), stale) {
		t.Errorf("%v %v of bytes %v shows what did not come", x.DType(), x.Shape(), blocks)
	}
}
