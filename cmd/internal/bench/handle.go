package bench

import (
	"cmp"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
)

// descriptor stands for the metadata of a tensor in a message.
var descriptor [128]byte

const small = 64 // bytes of a block that is only passed on

// leadHandle returns the total time of passing a block and [descriptor], in place of a tensor's
// metadata, back and forth o.Rounds times. The single reference moves with the block.
func leadHandle(s *side, o order) (time.Duration, error) {
	h, err := s.d.Alloc(small)
	if err != nil {
		return 0, err
	}
	defer func() { s.d.Release(h) }()
	if err := s.syncSides(); err != nil {
		return 0, err
	}
	var m arena.Message
	return timeRounds(o.Rounds, func() error { return s.exchangeHandle(&m, h) })
}

// exchangeHandle sends h with its reference to the other side and waits until the block comes
// back in m.
func (s *side) exchangeHandle(m *arena.Message, h arena.Handle) error {
	if err := s.putHandle(h); err != nil {
		return err
	}
	return s.takeHandle(m)
}

func (s *side) putHandle(h arena.Handle) error {
	return s.out.Put(s.ctx, descriptor[:], []arena.Handle{h}, true)
}

// takeHandle receives a message into m and releases its body. The caller gets the references of
// the blocks in m.Blocks.
func (s *side) takeHandle(m *arena.Message) error {
	if err := s.in.Get(s.ctx, m); err != nil {
		return err
	}
	m.Done()
	return nil
}

func followHandle(s *side, o order) (time.Duration, error) {
	if err := s.syncSides(); err != nil {
		return 0, err
	}
	var m arena.Message
	return repeatRounds(o.Rounds, func() error { return s.echoHandle(&m) })
}

func (s *side) echoHandle(m *arena.Message) error {
	if err := s.takeHandle(m); err != nil {
		return err
	}
	return s.putHandle(m.Blocks[0])
}

// untilAsleep is the pause after which the other side is asleep. A waiter spins for at most 60 µs,
// then naps for half a millisecond, and then parks.
const untilAsleep = 150 * time.Microsecond

// untilParked is the pause after which the other side is certainly parked.
const untilParked = 2 * time.Millisecond

// spinFor spins for d, as a computing program does, and returns the actual duration.
func spinFor(d time.Duration) time.Duration {
	begin := time.Now()
	for time.Since(begin) < d {
	}
	return time.Since(begin)
}

// leadAsleep measures round trips between sides that are asleep: each spins for o.Pause before
// send, or for untilAsleep if o.Pause is 0, so that the other one sleeps in recv. It returns the
// time of o.Rounds round trips without its own pauses.
func (s *side) leadAsleep(o order, send, recv func() error) (time.Duration, error) {
	if err := s.syncSides(); err != nil {
		return 0, err
	}
	var waited time.Duration
	d, err := timeRounds(o.Rounds, func() error {
		waited += spinFor(cmp.Or(o.Pause, untilAsleep))
		if err := send(); err != nil {
			return err
		}
		return recv()
	})
	return d - waited, err
}

// followAsleep is the follower's side of [side.leadAsleep]. Its pauses are included in the leader's
// time, so it returns them as a negative duration.
func (s *side) followAsleep(o order, send, recv func() error) (time.Duration, error) {
	if err := s.syncSides(); err != nil {
		return 0, err
	}
	var waited time.Duration
	_, err := timeRounds(o.Rounds, func() error {
		if err := recv(); err != nil {
			return err
		}
		waited += spinFor(cmp.Or(o.Pause, untilAsleep))
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
	return s.leadAsleep(o, func() error { return s.putHandle(h) }, func() error { return s.takeHandle(&m) })
}

func followHandleParked(s *side, o order) (time.Duration, error) {
	var m arena.Message
	return s.followAsleep(o, func() error { return s.putHandle(m.Blocks[0]) }, func() error { return s.takeHandle(&m) })
}

// leadEventfd and followEventfd measure the fastest way to wake a parked process that has no
// dedicated thread: a file descriptor in Go's network poller. They pause as [side.leadAsleep]
// does.
func leadEventfd(s *side, o order) (time.Duration, error) {
	return s.leadAsleep(o, s.signalEventfd, s.listen)
}

func followEventfd(s *side, o order) (time.Duration, error) {
	return s.followAsleep(o, s.signalEventfd, s.listen)
}

var one = [8]byte{1}

func (s *side) signalEventfd() error {
	_, err := s.bellOut.Write(one[:])
	return err
}

func (s *side) listen() error {
	var n [8]byte
	_, err := s.bellIn.Read(n[:])
	return err
}

// leadBody returns the time of o.Rounds round trips of o.Size bytes that are copied into a slot
// of the ring and out of it. They must fit into a slot.
func leadBody(s *side, o order) (time.Duration, error) {
	if err := s.syncSides(); err != nil {
		return 0, err
	}
	body, m := s.privateMemory(0, o.Size), new(arena.Message)
	return timeRounds(o.Rounds, func() error {
		if err := s.out.Put(s.ctx, body, nil, false); err != nil {
			return err
		}
		return s.takeHandle(m)
	})
}

func followBody(s *side, o order) (time.Duration, error) {
	if err := s.syncSides(); err != nil {
		return 0, err
	}
	m := new(arena.Message)
	return repeatRounds(o.Rounds, func() error {
		if err := s.in.Get(s.ctx, m); err != nil {
			return err
		}
		err := s.out.Put(s.ctx, m.Body, nil, false)
		m.Done()
		return err
	})
}

// leadHandles sends a new block in each round, in one direction. It returns the time until the
// other side has received and released all of them.
func leadHandles(s *side, o order) (time.Duration, error) {
	return s.streamOneWay(func() error {
		_, err := repeatRounds(o.Rounds, func() error {
			h, err := s.d.Alloc(small)
			if err != nil {
				return err
			}
			return s.putHandle(h)
		})
		return err
	})
}

func followHandles(s *side, o order) (time.Duration, error) {
	_, err := s.streamOneWay(func() error {
		var m arena.Message
		_, err := repeatRounds(o.Rounds, func() error {
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

// leadAlloc returns the time of o.Rounds life cycles of a block in one process: allocate, put,
// get and release.
func leadAlloc(s *side, o order) (time.Duration, error) {
	var m arena.Message
	return timeRounds(o.Rounds, func() error {
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
