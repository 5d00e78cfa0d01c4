package bench

import (
	"cmp"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
)

// descriptor stands for the metadata of a tensor in a message.
var descriptor [128]byte

const small = 64 // bytes of a block that is only passed on

// leadHandle passes a block and a descriptor back and forth. The single reference moves with the
// block.
func leadHandle(s *side, o order) (time.Duration, error) {
	h, err := s.d.Alloc(small)
	if err != nil {
		return 0, err
	}
	defer func() { s.d.Release(h) }()
	if err := s.meet(); err != nil {
		return 0, err
	}
	var m arena.Message
	return timed(o.Rounds, func() error { return s.exchange(&m, h) })
}

// exchange sends h and waits until it comes back.
func (s *side) exchange(m *arena.Message, h arena.Handle) error {
	if err := s.put(h); err != nil {
		return err
	}
	return s.take(m)
}

func (s *side) put(h arena.Handle) error {
	return s.out.Put(s.ctx, descriptor[:], []arena.Handle{h}, true)
}

// take receives a block and its reference.
func (s *side) take(m *arena.Message) error {
	if err := s.in.Get(s.ctx, m); err != nil {
		return err
	}
	m.Done()
	return nil
}

func followHandle(s *side, o order) (time.Duration, error) {
	if err := s.meet(); err != nil {
		return 0, err
	}
	var m arena.Message
	return repeat(o.Rounds, func() error { return s.echo(&m) })
}

func (s *side) echo(m *arena.Message) error {
	if err := s.take(m); err != nil {
		return err
	}
	return s.put(m.Blocks[0])
}

// untilAsleep is the pause after which the other side is asleep. A waiter spins for at most 60 µs,
// then naps for half a millisecond, and then parks.
const untilAsleep = 150 * time.Microsecond

// untilParked is the pause after which the other side is certainly parked.
const untilParked = 2 * time.Millisecond

// letSleep spins for d, as a computing program does, and returns the actual duration.
func letSleep(d time.Duration) time.Duration {
	begin := time.Now()
	for time.Since(begin) < d {
	}
	return time.Since(begin)
}

// asleep measures round trips between sides that are asleep: each pauses before send, so that the
// other one sleeps in recv. The pauses are subtracted from the time.
func (s *side) asleep(o order, send, recv func() error) (time.Duration, error) {
	if err := s.meet(); err != nil {
		return 0, err
	}
	var waited time.Duration
	d, err := timed(o.Rounds, func() error {
		waited += letSleep(cmp.Or(o.Pause, untilAsleep))
		if err := send(); err != nil {
			return err
		}
		return recv()
	})
	return d - waited, err
}

// awoken is the follower's side of asleep. Its pauses are included in the leader's time, so it
// returns them as a negative duration.
func (s *side) awoken(o order, send, recv func() error) (time.Duration, error) {
	if err := s.meet(); err != nil {
		return 0, err
	}
	var waited time.Duration
	_, err := timed(o.Rounds, func() error {
		if err := recv(); err != nil {
			return err
		}
		waited += letSleep(cmp.Or(o.Pause, untilAsleep))
		return send()
	})
	return -waited, err
}

func leadHandleParked(s *side, o order) (time.Duration, error) {
	h, err := s.d.Alloc(small)
	if err != nil {
		return 0, err
	}
	defer func() { s.d.Release(h) }()
	var m arena.Message
	return s.asleep(o, func() error { return s.put(h) }, func() error { return s.take(&m) })
}

func followHandleParked(s *side, o order) (time.Duration, error) {
	var m arena.Message
	return s.awoken(o, func() error { return s.put(m.Blocks[0]) }, func() error { return s.take(&m) })
}

// leadEventfd and followEventfd measure the fastest way to wake a parked process that has no
// dedicated thread: a file descriptor in Go's network poller.
func leadEventfd(s *side, o order) (time.Duration, error) { return s.asleep(o, s.strike, s.listen) }

func followEventfd(s *side, o order) (time.Duration, error) { return s.awoken(o, s.strike, s.listen) }

var one = [8]byte{1}

func (s *side) strike() error {
	_, err := s.bellOut.Write(one[:])
	return err
}

func (s *side) listen() error {
	var n [8]byte
	_, err := s.bellIn.Read(n[:])
	return err
}

// leadBody passes back and forth bytes that fit into a slot and are copied in and out.
func leadBody(s *side, o order) (time.Duration, error) {
	if err := s.meet(); err != nil {
		return 0, err
	}
	body, m := s.private(0, o.Size), new(arena.Message)
	return timed(o.Rounds, func() error {
		if err := s.out.Put(s.ctx, body, nil, false); err != nil {
			return err
		}
		return s.take(m)
	})
}

func followBody(s *side, o order) (time.Duration, error) {
	if err := s.meet(); err != nil {
		return 0, err
	}
	m := new(arena.Message)
	return repeat(o.Rounds, func() error {
		if err := s.in.Get(s.ctx, m); err != nil {
			return err
		}
		err := s.out.Put(s.ctx, m.Body, nil, false)
		m.Done()
		return err
	})
}

// leadHandles sends a new block in each round, in one direction.
func leadHandles(s *side, o order) (time.Duration, error) {
	return s.stream(func() error {
		_, err := repeat(o.Rounds, func() error {
			h, err := s.d.Alloc(small)
			if err != nil {
				return err
			}
			return s.put(h)
		})
		return err
	})
}

func followHandles(s *side, o order) (time.Duration, error) {
	_, err := s.stream(func() error {
		var m arena.Message
		_, err := repeat(o.Rounds, func() error {
			if err := s.in.Get(s.ctx, &m); err != nil {
				return err
			}
			m.Discard()
			return nil
		})
		return err
	})
	return 0, err
}

// leadAlloc measures the life cycle of a block in one process: allocate, put, get and release.
func leadAlloc(s *side, o order) (time.Duration, error) {
	var m arena.Message
	return timed(o.Rounds, func() error {
		h, err := s.d.Alloc(small)
		if err != nil {
			return err
		}
		if err := s.out.TryPut(descriptor[:], []arena.Handle{h}, true); err != nil {
			return err
		}
		if err := s.out.TryGet(&m); err != nil {
			return err
		}
		m.Discard()
		return nil
	})
}
