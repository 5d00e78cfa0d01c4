package data

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/shoal-mp/shoal"
)

// Stats are counts and times of a Loader since it was made.
type Stats struct {
	Samples, Batches int           // delivered samples and batches
	Skipped          int           // samples left out because of an error
	Deaths           int           // workers that died with a request
	Ready            int           // batches that are ready and not delivered
	Elapsed          time.Duration // time of all loops over batches
	ConsumerStall    time.Duration // part of Elapsed in which the consumer waited for a batch
	Busy             time.Duration // time that all workers together took to load samples
	WorkerStall      time.Duration // time that all workers together had nothing to do
	Workers          int           // number of workers
	Kind             Kind          // kind of the workers; for Auto the kind that it chose, and Auto before
}

// SamplesPerSecond returns how many samples the consumer got a second.
func (s Stats) SamplesPerSecond() float64 { return float64(s.Samples) / s.Elapsed.Seconds() }

// stalled is the part of the time that a consumer may wait without being the one that is waited
// for.
const stalled = 0.05

// loaderIsSlow reports whether the consumer waits for the Loader more than the workers wait for the
// consumer.
func (s Stats) loaderIsSlow() bool { return s.ConsumerStall.Seconds() > stalled*s.Elapsed.Seconds() }

// enoughWorkers estimates how many workers would keep up with the consumer, from the times of
// loading and of the consumer so far. It returns 0 before the first batch. If loading keeps a CPU
// busy, more workers than shoal.Threads() do not help.
func (s Stats) enoughWorkers() int {
	consumer := s.Elapsed - s.ConsumerStall
	if s.Samples == 0 || s.Busy == 0 || consumer <= 0 {
		return 0
	}
	return int(math.Ceil(min(s.Busy.Seconds()/consumer.Seconds(), math.MaxInt32)))
}

// String returns one line with the speed, and with the side that waits for the other.
func (s Stats) String() string {
	line := fmt.Sprintf(
		"%d samples in %d batches, %.0f samples/s, %d batches ready, %d skipped, %d workers lost", s.Samples,
		s.Batches, s.SamplesPerSecond(), s.Ready, s.Skipped, s.Deaths)
	n := s.enoughWorkers()
	switch {
	case n == 0:
		return line
	case !s.loaderIsSlow():
		return line + fmt.Sprintf("; the consumer is what takes the time: %d of %d workers would do",
			min(n, max(1, s.Workers)), s.Workers)
	case n > shoal.Threads() && s.Workers >= shoal.Threads():
		return line + fmt.Sprintf(
			"; loading is what takes the time: %d workers would keep up, on as many CPUs; there are %d", n,
			shoal.Threads())
	}
	return line + fmt.Sprintf("; loading is what takes the time: %d workers would keep up, there are %d", n, s.Workers)
}

// A meter counts for Stats.
type meter struct {
	mu    sync.Mutex
	stats Stats
	by    [kinds]cost // of workers of each Kind
	loops int         // under way
	since time.Time   // the first of them began, or time was last added up
}

// did counts a request of so many samples.
func (m *meter) did(samples int, out fetchResult, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats.Busy += out.Took
	if err == nil {
		m.by[out.Kind].samples += samples
		m.by[out.Kind].busy += out.Took
	}
	if err != nil && isDeath(err) {
		m.stats.Deaths++
	}
}

func (m *meter) costs() [kinds]cost {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.by
}

func (m *meter) delivered(samples, skipped int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats.Skipped += skipped
	if samples > 0 {
		m.stats.Batches++
		m.stats.Samples += samples
	}
}

func (m *meter) waited(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats.ConsumerStall += d
}

// loop counts a loop over batches that begins or, with -1, ends.
func (m *meter) loop(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tick()
	m.loops += n
}

// tick adds up the time. mu is held.
func (m *meter) tick() {
	now := time.Now()
	if m.loops > 0 {
		m.stats.Elapsed += now.Sub(m.since) * time.Duration(m.loops)
	}
	m.since = now
}

func (m *meter) read(workers, ready int) Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tick()
	s := m.stats
	s.Workers, s.Ready = workers, ready
	s.WorkerStall = max(0, s.Elapsed*time.Duration(max(1, workers))-s.Busy)
	return s
}
