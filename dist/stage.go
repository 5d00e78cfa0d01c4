package dist

import (
	"errors"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

// A stage is the shared memory through which ranks exchange data. Each rank has two slots, for even
// and for odd turns, and writes only to its own. In each turn all ranks write, pass the barrier,
// and read the slots of the others. After the barrier a rank may write to its slot of the next turn
// at once. No rank reads that slot any more, because a rank enters a turn only after it has read
// the data of the turn before it.
//
// A slot has a head, which describes the call (see writeHead), and room for data.
type stage struct {
	size  int // number of ranks
	slot  int // bytes per slot
	bytes []byte
	views map[tensor.DType]*tensor.Tensor // views of all bytes, by dtype, for reductions
	from  *ipc.Memory
}

const (
	headBytes = 512
	maxRoom   = 256 << 10 // larger slots exceed the CPU cache, smaller ones need more turns
	allRoom   = 8 << 20
)

// slotCapacity returns the number of data bytes of a slot for a group of size ranks, a multiple of
// 16 KiB.
func slotCapacity(size int) int { return min(allRoom/(2*size)&^(16<<10-1), maxRoom) }

func stageBytes(size int) int { return 2 * size * (headBytes + slotCapacity(size)) }

func newStage(m *ipc.Memory, size int) (stage, error) {
	s := stage{size: size, slot: headBytes + slotCapacity(size), bytes: m.Bytes(),
		views: map[tensor.DType]*tensor.Tensor{}, from: m}
	if s.bytes == nil {
		return stage{}, ErrClosed
	}
	return s, nil
}

// slotOffset returns the offset of a rank's slot for a turn.
func (s *stage) slotOffset(turn int64, rank int) int { return (int(turn&1)*s.size + rank) * s.slot }

func (s *stage) head(turn int64, rank int) []byte {
	at := s.slotOffset(turn, rank)
	return s.bytes[at : at+headBytes]
}

func (s *stage) data(turn int64, rank int) []byte {
	at := s.slotOffset(turn, rank)
	return s.bytes[at+headBytes : at+s.slot]
}

// view returns the whole stage as a tensor of the given dtype. The stage owns it.
func (s *stage) view(dt tensor.DType) (*tensor.Tensor, error) {
	if v := s.views[dt]; v != nil {
		return v, nil
	}
	v, err := tensor.FromBuffer(s.from, dt, []int{len(s.bytes) / dt.Size()}, nil, 0)
	if err == nil {
		s.views[dt] = v
	}
	return v, err
}

func (s *stage) close() (err error) {
	for _, v := range s.views {
		err = errors.Join(err, v.Close())
	}
	s.bytes, s.views = nil, nil
	return err
}
