package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/shoal-mp/shoal/internal/shm"
)

// leadQueue puts numbers into a queue, one way.
func leadQueue(s *side, o order) (time.Duration, error) {
	if err := s.meet(); err != nil {
		return 0, err
	}
	begin := time.Now()
	_, err := repeat(o.Rounds, func() error { return s.numbers.Put(s.ctx, 1) })
	if err == nil {
		err = s.meet() // the other side has them all
	}
	return time.Since(begin), err
}

func followQueue(s *side, o order) (time.Duration, error) {
	if err := s.meet(); err != nil {
		return 0, err
	}
	_, err := repeat(o.Rounds, func() error {
		_, err := s.numbers.Get(s.ctx)
		return err
	})
	if err == nil {
		err = s.meet()
	}
	return 0, err
}

// leadTensor sends a tensor's block to and fro; each side writes its first and its last bytes.
func leadTensor(s *side, o order) (time.Duration, error) {
	h, err := s.fresh(o.Size)
	if err != nil {
		return 0, err
	}
	if err := s.meet(); err != nil {
		return 0, err
	}
	d, err := timed(o.Rounds, func() error {
		if err := s.deliver(h, o.Size); err != nil {
			return err
		}
		c, err := s.recv.Get(s.ctx)
		h = c.Data.Handle
		return err
	})
	return d, errors.Join(err, s.d.Release(h))
}

// fresh returns a block all of whose pages have been touched.
func (s *side) fresh(size int) (shm.Handle, error) {
	h, err := s.d.Alloc(size)
	if err != nil {
		return 0, err
	}
	p, err := s.d.Bytes(h)
	if err != nil {
		return 0, err
	}
	for i := 0; i < size; i += 4096 {
		p[i] = 1
	}
	return h, nil
}

// deliver writes to both ends of a block and sends it, which is then the receiver's.
func (s *side) deliver(h shm.Handle, size int) error {
	p, err := s.d.Bytes(h)
	if err != nil {
		return err
	}
	edges(p[:size])
	if err := s.send.Put(s.ctx, cargo{block{h}}); err != nil {
		return err
	}
	return s.d.Release(h)
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
		c, err := s.recv.Get(s.ctx)
		if err != nil {
			return err
		}
		p, err := s.d.Bytes(c.Data.Handle)
		if err != nil {
			return err
		}
		use(p[:o.Size])
		return s.deliver(c.Data.Handle, o.Size)
	})
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

// leadFresh makes a tensor each time: a new block, filled from private memory, and handed over
// until the other side has it.
func leadFresh(s *side, o order) (time.Duration, error) {
	data := s.private(0, o.Size)
	if err := s.meet(); err != nil {
		return 0, err
	}
	var m shm.Message
	return timed(o.Rounds, func() error {
		h, err := s.d.Alloc(o.Size)
		if err != nil {
			return err
		}
		p, err := s.d.Bytes(h)
		if err != nil {
			return err
		}
		copy(p[:o.Size], data)
		if err := s.deliver(h, o.Size); err != nil {
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
		c, err := s.recv.Get(s.ctx)
		if err != nil {
			return err
		}
		p, err := s.d.Bytes(c.Data.Handle)
		if err != nil {
			return err
		}
		if len(p) < o.Size {
			return fmt.Errorf("%d bytes came, not %d", len(p), o.Size)
		}
		edges(p[:o.Size])
		if err := s.d.Release(c.Data.Handle); err != nil {
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

// within times what is done with a block of shared memory in one process.
func (s *side) within(o order, do func(p []byte)) (time.Duration, error) {
	h, err := s.fresh(o.Size)
	if err != nil {
		return 0, err
	}
	defer s.d.Release(h)
	p, err := s.d.Bytes(h)
	if err != nil {
		return 0, err
	}
	do(p[:o.Size]) // also makes the private memory
	return timed(o.Rounds, func() error { do(p[:o.Size]); return nil })
}
