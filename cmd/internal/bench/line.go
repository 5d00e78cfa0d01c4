package bench

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// leadLine and followLine pass a cache line back and forth while spinning, which is the fastest
// communication between two processors. leadLine returns the time of o.Rounds round trips.
func leadLine(s *side, o order) (time.Duration, error) {
	ping, pong := s.ownWord(signals), s.peerWord(signals)
	if err := s.reset(signals); err != nil {
		return 0, err
	}
	begin := time.Now()
	for turn := range uint64(o.Rounds) {
		ping.Store(turn + 1)
		if err := s.awaitWord(pong, turn+1); err != nil {
			return 0, err
		}
	}
	return time.Since(begin), nil
}

func followLine(s *side, o order) (time.Duration, error) {
	ping, pong := s.peerWord(signals), s.ownWord(signals)
	if err := s.reset(signals); err != nil {
		return 0, err
	}
	for turn := range uint64(o.Rounds) {
		if err := s.awaitWord(ping, turn+1); err != nil {
			return 0, err
		}
		pong.Store(turn + 1)
	}
	return 0, nil
}

// reset clears this side's word at base and waits until the other side has called reset, too.
func (s *side) reset(base int) error {
	s.ownWord(base).Store(0)
	return s.syncSides()
}

func (s *side) awaitWord(w *atomic.Uint64, v uint64) error {
	for i := 0; w.Load() != v; i++ {
		if err := s.yieldSpin(i); err != nil {
			return err
		}
	}
	return nil
}

// bareRing is the number of words in the bare ring.
const bareRing = 1024

// leadBare and followBare implement the simplest possible queue: a ring of words with one writer
// and one reader. Each reads the other's ticket only if necessary. leadBare returns the time
// until the reader has read o.Rounds words.
func leadBare(s *side, o order) (time.Duration, error) {
	tail, head := s.ownWord(tickets), s.peerWord(tickets)
	ring := s.words[bareSlots : bareSlots+bareRing]
	if err := s.reset(tickets); err != nil {
		return 0, err
	}
	begin := time.Now()
	seen := uint64(0)
	for n := range uint64(o.Rounds) {
		for i := 0; n-seen >= bareRing; i++ {
			seen = head.Load()
			if err := s.yieldSpin(i); err != nil {
				return 0, err
			}
		}
		ring[n%bareRing].Store(n)
		tail.Store(n + 1)
	}
	err := s.awaitWord(head, uint64(o.Rounds))
	return time.Since(begin), err
}

func followBare(s *side, o order) (time.Duration, error) {
	tail, head := s.peerWord(tickets), s.ownWord(tickets)
	ring := s.words[bareSlots : bareSlots+bareRing]
	if err := s.reset(tickets); err != nil {
		return 0, err
	}
	seen, sum := uint64(0), uint64(0)
	for n := range uint64(o.Rounds) {
		for i := 0; n >= seen; i++ {
			seen = tail.Load()
			if err := s.yieldSpin(i); err != nil {
				return 0, err
			}
		}
		sum += ring[n%bareRing].Load()
		head.Store(n + 1)
	}
	runtime.KeepAlive(sum)
	return 0, nil
}

// leadFutex and followFutex sleep in the kernel between turns, each on the other's word.
// leadFutex returns the time of o.Rounds round trips.
func leadFutex(s *side, o order) (time.Duration, error) {
	if err := s.reset(signals); err != nil {
		return 0, err
	}
	turn := uint64(0)
	return timeRounds(o.Rounds, func() error {
		turn++
		if err := s.callFutex(turn); err != nil {
			return err
		}
		return s.awaitFutex(turn)
	})
}

func followFutex(s *side, o order) (time.Duration, error) {
	if err := s.reset(signals); err != nil {
		return 0, err
	}
	turn := uint64(0)
	return repeatRounds(o.Rounds, func() error {
		turn++
		if err := s.awaitFutex(turn); err != nil {
			return err
		}
		return s.callFutex(turn)
	})
}

func (s *side) callFutex(turn uint64) error {
	s.ownWord(signals).Store(turn)
	return sys.FutexWake(s.ownWord(signals))
}

func (s *side) awaitFutex(turn uint64) error {
	for w := s.peerWord(signals); w.Load() != turn; {
		if err := sys.FutexWait(w, uint32(turn-1), time.Second); err != nil {
			return err
		}
		if err := s.ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// leadCAS returns the time of o.Rounds compare-and-swap operations on a word that no other
// processor accesses.
func leadCAS(s *side, o order) (time.Duration, error) {
	w := s.ownWord(signals)
	w.Store(0)
	begin := time.Now()
	for n := range uint64(o.Rounds) {
		w.CompareAndSwap(n, n+1)
	}
	return time.Since(begin), nil
}
