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

// leadQueue puts numbers into a queue, one way.
func leadQueue(s *side, o order) (time.Duration, error) {
	return s.stream(func() error {
		_, err := repeat(o.Rounds, func() error { return s.numbers.Put(s.ctx, 1) })
		return err
	})
}

func followQueue(s *side, o order) (time.Duration, error) {
	_, err := s.stream(func() error {
		_, err := repeat(o.Rounds, func() error {
			_, err := s.numbers.Get(s.ctx)
			return err
		})
		return err
	})
	return 0, err
}

// leadTensor sends a tensor to and fro; each side writes its first and its last bytes.
func leadTensor(s *side, o order) (time.Duration, error) {
	t, err := touched(o.Size)
	if err != nil {
		return 0, err
	}
	defer func() { t.Close() }()
	if err := s.meet(); err != nil {
		return 0, err
	}
	return timed(o.Rounds, func() error {
		if err := s.deliver(t); err != nil {
			return err
		}
		back, err := s.recv.Get(s.ctx)
		if err == nil {
			t = back
		}
		return err
	})
}

// touched returns a tensor of so many bytes in shared memory, all of whose pages have been written.
func touched(size int) (*tensor.Tensor, error) {
	t, err := tensor.NewShared(tensor.Uint8, size)
	if err != nil {
		return nil, err
	}
	return t.Fill(1), nil
}

// deliver writes to both ends of a tensor and gives it away.
func (s *side) deliver(t *tensor.Tensor) error {
	edges(tensor.Data[uint8](t))
	return s.send.Put(s.ctx, t.Give())
}

// edges writes the first and the last 64 bytes.
func edges(p []byte) {
	n := min(64, len(p))
	for i := range n {
		p[i]++
		p[len(p)-1-i]++
	}
}

func followTensor(s *side, o order) (time.Duration, error) {
	return s.bounce(o, func([]byte) {})
}

// followSum is the receiver that reads every byte.
func followSum(s *side, o order) (time.Duration, error) {
	var total uint64
	d, err := s.bounce(o, func(p []byte) { total += sum(p) })
	runtime.KeepAlive(total)
	return d, err
}

// bounce sends back what it gets after use.
func (s *side) bounce(o order, use func(p []byte)) (time.Duration, error) {
	if err := s.meet(); err != nil {
		return 0, err
	}
	return repeat(o.Rounds, func() error {
		t, err := s.recv.Get(s.ctx)
		if err != nil {
			return err
		}
		use(tensor.Data[uint8](t))
		return s.deliver(t)
	})
}

// leadTensors makes a new tensor each time and sends it, one way.
func leadTensors(s *side, o order) (time.Duration, error) {
	return s.stream(func() error {
		_, err := repeat(o.Rounds, func() error {
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
	_, err := s.stream(func() error {
		_, err := repeat(o.Rounds, func() error {
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

// stream does this side of what goes one way, and returns how long it took until both sides were
// done.
func (s *side) stream(do func() error) (time.Duration, error) {
	if err := s.meet(); err != nil {
		return 0, err
	}
	begin := time.Now()
	err := do()
	if err == nil {
		err = s.meet()
	}
	return time.Since(begin), err
}

// tensorLife goes the whole way of a tensor in one process: made, given away, got, closed.
func tensorLife(s *side, o order) (d time.Duration, err error) {
	q, err := ipc.NewQueue[*tensor.Tensor](ringSlots)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	return timed(o.Rounds, func() error {
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

// queueBatch is how many numbers PutN and GetN move at once.
const queueBatch = 64

// leadBatches puts numbers into a queue, one way, many at a time.
func leadBatches(s *side, o order) (time.Duration, error) {
	batch := make([]int, queueBatch)
	return s.stream(func() error {
		_, err := repeat(o.Rounds, func() error {
			_, err := s.numbers.PutN(s.ctx, batch)
			return err
		})
		return err
	})
}

func followBatches(s *side, o order) (time.Duration, error) {
	_, err := s.stream(func() error {
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

// sum adds the 64-bit words of p, in four sums so that one addition does not wait for the other.
func sum(p []byte) uint64 {
	var a, b, c, d uint64
	for ; len(p) >= 32; p = p[32:] {
		a += binary.LittleEndian.Uint64(p)
		b += binary.LittleEndian.Uint64(p[8:])
		c += binary.LittleEndian.Uint64(p[16:])
		d += binary.LittleEndian.Uint64(p[24:])
	}
	return a + b + c + d
}

// leadFresh makes a tensor each time, filled from private memory, and handed over until the other
// side has it.
func leadFresh(s *side, o order) (time.Duration, error) {
	data := s.private(0, o.Size)
	if err := s.meet(); err != nil {
		return 0, err
	}
	var m arena.Message
	return timed(o.Rounds, func() error {
		t, err := tensor.EmptyShared(tensor.Uint8, o.Size)
		if err != nil {
			return err
		}
		copy(tensor.Data[uint8](t), data)
		if err := s.deliver(t); err != nil {
			return err
		}
		return s.take(&m)
	})
}

func followFresh(s *side, o order) (time.Duration, error) {
	if err := s.meet(); err != nil {
		return 0, err
	}
	return repeat(o.Rounds, func() error {
		t, err := s.recv.Get(s.ctx)
		if err != nil {
			return err
		}
		if t.Numel() != o.Size {
			return fmt.Errorf("%d bytes came, not %d", t.Numel(), o.Size)
		}
		edges(tensor.Data[uint8](t))
		if err := t.Close(); err != nil {
			return err
		}
		return s.out.Put(s.ctx, nil, nil, false)
	})
}

// leadCopy copies private memory into a block that is there already.
func leadCopy(s *side, o order) (time.Duration, error) {
	return s.within(o, func(p []byte) { copy(p, s.private(0, o.Size)) })
}

// leadSum reads a block.
func leadSum(s *side, o order) (time.Duration, error) {
	var total uint64
	d, err := s.within(o, func(p []byte) { total += sum(p) })
	runtime.KeepAlive(total)
	return d, err
}

// within times what is done with a tensor's shared memory in one process.
func (s *side) within(o order, do func(p []byte)) (time.Duration, error) {
	t, err := touched(o.Size)
	if err != nil {
		return 0, err
	}
	defer t.Close()
	p := tensor.Data[uint8](t)
	do(p) // also makes the private memory
	return timed(o.Rounds, func() error { do(p); return nil })
}
