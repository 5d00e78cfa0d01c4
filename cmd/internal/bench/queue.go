package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

// leadQueue puts o.Rounds numbers into a queue, one by one. It returns the time until the other
// side has got all of them.
func leadQueue(s *side, o order) (time.Duration, error) {
	return s.streamOneWay(func() error {
		_, err := repeatRounds(o.Rounds, func() error { return s.numbers.Put(s.ctx, 1) })
		return err
	})
}

func followQueue(s *side, o order) (time.Duration, error) {
	_, err := s.streamOneWay(func() error {
		_, err := repeatRounds(o.Rounds, func() error {
			_, err := s.numbers.Get(s.ctx)
			return err
		})
		return err
	})
	return 0, err
}

// leadTensor returns a function that passes a tensor of o.Size bytes back and forth; each side
// writes its first and last bytes. rounds performs the round trips and returns the result:
// timeRounds or tailOf.
func leadTensor(rounds func(n int, round func() error) (time.Duration, error)) func(*side, order) (
	time.Duration, error) {
	return func(s *side, o order) (time.Duration, error) {
		t, err := newTouchedTensor(o.Size)
		if err != nil {
			return 0, err
		}
		defer func() { t.Close() }()
		if err := s.syncSides(); err != nil {
			return 0, err
		}
		return rounds(o.Rounds, func() error { return s.exchangeTensor(&t) })
	}
}

// newTouchedTensor returns a shared tensor of size bytes with all of its pages written. The caller
// must close it.
func newTouchedTensor(size int) (*tensor.Tensor, error) {
	t, err := tensor.NewShared(tensor.Uint8, size)
	if err != nil {
		return nil, err
	}
	return t.Fill(1), nil
}

// sendTensor writes both ends of a tensor of bytes and sends it. If it succeeds, t is closed,
// because the reference goes to the other side.
func (s *side) sendTensor(t *tensor.Tensor) error {
	writeEdges(tensor.Data[uint8](t))
	return s.send.Put(s.ctx, t.Give())
}

// writeEdges increments each of the first and the last 64 bytes of p.
func writeEdges(p []byte) {
	n := min(64, len(p))
	for i := range n {
		p[i]++
		p[len(p)-1-i]++
	}
}

func followTensor(s *side, o order) (time.Duration, error) {
	return s.bounceTensors(o, func([]byte) {})
}

// followSum is like followTensor, but reads every byte of each tensor before it sends it back.
func followSum(s *side, o order) (time.Duration, error) {
	var total uint64
	d, err := s.bounceTensors(o, func(p []byte) { total += sumWords(p) })
	runtime.KeepAlive(total)
	return d, err
}

// bounceTensors receives o.Rounds tensors, calls use with the bytes of each, and sends it back.
// use must not keep p. The duration that bounceTensors returns is always 0.
func (s *side) bounceTensors(o order, use func(p []byte)) (time.Duration, error) {
	if err := s.syncSides(); err != nil {
		return 0, err
	}
	return repeatRounds(o.Rounds, func() error {
		t, err := s.recv.Get(s.ctx)
		if err != nil {
			return err
		}
		use(tensor.Data[uint8](t))
		return s.sendTensor(t)
	})
}

// leadTensors creates and sends a new tensor of o.Size bytes in each round, in one direction. It
// returns the time until the other side has received and closed all of them.
func leadTensors(s *side, o order) (time.Duration, error) {
	return s.streamOneWay(func() error {
		_, err := repeatRounds(o.Rounds, func() error {
			t, err := tensor.EmptyShared(tensor.Uint8, o.Size)
			if err != nil {
				return err
			}
			return s.send.Put(s.ctx, t.Give())
		})
		return err
	})
}

func followTensors(s *side, o order) (time.Duration, error) {
	_, err := s.streamOneWay(func() error {
		_, err := repeatRounds(o.Rounds, func() error {
			t, err := s.recv.Get(s.ctx)
			if err != nil {
				return err
			}
			return t.Close()
		})
		return err
	})
	return 0, err
}

// streamOneWay performs this side of a transfer in one direction: do must send or receive all
// messages. It returns the time until both sides are done.
func (s *side) streamOneWay(do func() error) (time.Duration, error) {
	if err := s.syncSides(); err != nil {
		return 0, err
	}
	begin := time.Now()
	err := do()
	if err == nil {
		err = s.syncSides()
	}
	return time.Since(begin), err
}

// measureTensorLife returns the total time of o.Rounds life cycles of a tensor in one process:
// create, put, get and close.
func measureTensorLife(s *side, o order) (d time.Duration, err error) {
	q, err := ipc.NewQueue[*tensor.Tensor](ringSlots)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	return timeRounds(o.Rounds, func() error {
		t, err := tensor.EmptyShared(tensor.Uint8, o.Size)
		if err != nil {
			return err
		}
		if err := q.Put(s.ctx, t.Give()); err != nil {
			return err
		}
		got, err := q.Get(s.ctx)
		if err != nil {
			return err
		}
		return got.Close()
	})
}

// queueBatch is the number of values that PutN and GetN transfer at once.
const queueBatch = 64

// leadBatches puts o.Rounds batches of queueBatch numbers into a queue. It returns the time
// until the other side has got all of them.
func leadBatches(s *side, o order) (time.Duration, error) {
	batch := make([]int, queueBatch)
	return s.streamOneWay(func() error {
		_, err := repeatRounds(o.Rounds, func() error {
			_, err := s.numbers.PutN(s.ctx, batch)
			return err
		})
		return err
	})
}

func followBatches(s *side, o order) (time.Duration, error) {
	_, err := s.streamOneWay(func() error {
		batch := make([]int, queueBatch)
		for got := 0; got < o.Rounds*queueBatch; {
			n, err := s.numbers.GetN(s.ctx, batch)
			if err != nil {
				return err
			}
			got += n
		}
		return nil
	})
	return 0, err
}

// sumWords adds the 64-bit words of p in four independent accumulators, so that the additions
// are not serialized. It ignores the last len(p)%32 bytes.
func sumWords(p []byte) uint64 {
	var a, b, c, d uint64
	for ; len(p) >= 32; p = p[32:] {
		a += binary.LittleEndian.Uint64(p)
		b += binary.LittleEndian.Uint64(p[8:])
		c += binary.LittleEndian.Uint64(p[16:])
		d += binary.LittleEndian.Uint64(p[24:])
	}
	return a + b + c + d
}

// leadFresh creates a tensor of o.Size bytes in each round, fills it from private memory and
// sends it. It returns the total time until the other side has received each one.
func leadFresh(s *side, o order) (time.Duration, error) {
	data := s.privateMemory(0, o.Size)
	if err := s.syncSides(); err != nil {
		return 0, err
	}
	var m arena.Message
	return timeRounds(o.Rounds, func() error {
		t, err := tensor.EmptyShared(tensor.Uint8, o.Size)
		if err != nil {
			return err
		}
		copy(tensor.Data[uint8](t), data)
		if err := s.sendTensor(t); err != nil {
			return err
		}
		return s.takeHandle(&m)
	})
}

func followFresh(s *side, o order) (time.Duration, error) {
	if err := s.syncSides(); err != nil {
		return 0, err
	}
	return repeatRounds(o.Rounds, func() error {
		t, err := s.recv.Get(s.ctx)
		if err != nil {
			return err
		}
		if t.Numel() != o.Size {
			return fmt.Errorf("received %d bytes, want %d", t.Numel(), o.Size)
		}
		writeEdges(tensor.Data[uint8](t))
		if err := t.Close(); err != nil {
			return err
		}
		return s.out.Put(s.ctx, nil, nil, false)
	})
}

// leadCopy returns the time of o.Rounds copies of o.Size bytes of private memory into shared
// memory that is already mapped.
func leadCopy(s *side, o order) (time.Duration, error) {
	return s.measureAccess(o, func(p []byte) { copy(p, s.privateMemory(0, o.Size)) })
}

// leadSum returns the time to read o.Size bytes of shared memory o.Rounds times.
func leadSum(s *side, o order) (time.Duration, error) {
	var total uint64
	d, err := s.measureAccess(o, func(p []byte) { total += sumWords(p) })
	runtime.KeepAlive(total)
	return d, err
}

// measureAccess returns the total time of o.Rounds calls of do with a tensor's shared memory in one
// process. do must not keep p.
func (s *side) measureAccess(o order, do func(p []byte)) (time.Duration, error) {
	t, err := newTouchedTensor(o.Size)
	if err != nil {
		return 0, err
	}
	defer t.Close()
	p := tensor.Data[uint8](t)
	do(p) // also allocates the private memory
	return timeRounds(o.Rounds, func() error { do(p); return nil })
}
