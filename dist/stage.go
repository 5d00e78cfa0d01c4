package dist

import (
	"errors"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

// A stage is the memory by which ranks exchange what they have. Each rank has two slots, for turns
// with even and with odd numbers, and writes to them only. In a turn all write, all meet, and all
// read what the others wrote. To the slot of the next turn a rank may write as soon as they have
// met: nobody reads that one any more, since a rank that comes to a turn has read the one before
// it.
//
// A slot has a head, in which the rank says what it calls, and room for data.
type stage struct {
	size  int // ranks
	slot  int // bytes
	bytes []byte
	views map[tensor.DType]*tensor.Tensor // of all bytes, by the dtype that was reduced
	from  *ipc.Memory
}

const (
	headBytes = 512
	maxRoom   = 256 << 10 // larger ones leave the processor's cache, smaller ones take more turns
	allRoom   = 8 << 20
)

// room returns for how many bytes of data a slot has room: a multiple of 16 KiB.
func room(size int) int { return min(allRoom/(2*size)&^(16<<10-1), maxRoom) }

func stageBytes(size int) int { return 2 * size * (headBytes + room(size)) }

func newStage(m *ipc.Memory, size int) (stage, error) {
	s := stage{size: size, slot: headBytes + room(size), bytes: m.Bytes(),
		views: map[tensor.DType]*tensor.Tensor{}, from: m}
	if s.bytes == nil {
		return stage{}, ErrClosed
	}
	return s, nil
}

// at returns where the slot of a rank in a turn is.
func (s *stage) at(turn int64, rank int) int { return (int(turn&1)*s.size + rank) * s.slot }

func (s *stage) head(turn int64, rank int) []byte {
	at := s.at(turn, rank)
	return s.bytes[at : at+headBytes]
}

func (s *stage) data(turn int64, rank int) []byte {
	at := s.at(turn, rank)
	return s.bytes[at+headBytes : at+s.slot]
}

// view returns all of the stage as elements of a dtype.
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
