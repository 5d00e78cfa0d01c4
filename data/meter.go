package data

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/shoal-mp/shoal"
)

// Stats are counts and times of a [Loader] since it was made.
type Stats struct {
	Samples, Batches int           // delivered samples and batches
	Skipped          int           // samples left out because of an error
	Deaths           int           // workers that died with a request
	Ready            int           // batches that are ready and not delivered
	Elapsed          time.Duration // time of all loops over batches
	ConsumerStall    time.Duration // part of Elapsed in which the consumer waited for a batch
	Busy             time.Duration // time that all workers together took to load samples
	WorkerStall      time.Duration // time that all workers together were idle
	Workers          int           // number of workers
	Kind             Kind          // kind of the workers; for Auto the chosen one, or Auto before
}

// SamplesPerSecond returns the rate of delivered samples, counted over Elapsed. It is NaN before
// the first loop.
func (s Stats) SamplesPerSecond() float64 { return float64(s.Samples) / s.Elapsed.Seconds() }

// stalled is the fraction of its time that the consumer may wait before the Loader counts as too
// slow.
const stalled = 0.05

// loaderIsSlow reports whether loading, and not the consumer, limits the speed.
func (s Stats) loaderIsSlow() bool { return s.ConsumerStall.Seconds() > stalled*s.Elapsed.Seconds() }

// enoughWorkers estimates the number of workers that would keep up with the consumer, from the
// times so far. It returns 0 before the first batch. If loading is CPU-bound, more workers than
// shoal.Threads() do not help.
func (s Stats) enoughWorkers() int {
	consumer := s.Elapsed - s.ConsumerStall
	if s.Samples == 0 || s.Busy == 0 || consumer <= 0 {
		return 0
	}
	return int(math.Ceil(min(s.Busy.Seconds()/consumer.Seconds(), math.MaxInt32)))
}

// String returns one line with the speed and the side that limits it.
func (s Stats) String() string {
	line := fmt.Sprintf(
		"%d samples in %d batches, %.0f samples/s, %d batches ready, %d skipped, %d workers lost", s.Samples,
		s.Batches, s.SamplesPerSecond(), s.Ready, s.Skipped, s.Deaths)
	n := s.enoughWorkers()
	switch {
	case n == 0:
		return line
	case !s.loaderIsSlow():
		return line + fmt.Sprintf("; the consumer is the bottleneck: %d of %d workers would suffice",
			min(n, max(1, s.Workers)), s.Workers)
	case n > shoal.Threads() && s.Workers >= shoal.Threads():
		return line + fmt.Sprintf(
			"; loading is the bottleneck: %d workers would keep up on as many CPUs, but there are %d", n,
			shoal.Threads())
	}
	return line + fmt.Sprintf("; loading is the bottleneck: %d workers would keep up, there are %d", n, s.Workers)
}

// A meter collects the [Stats] of a Loader. Its methods may be called from several goroutines.
type meter struct {
	mu    sync.Mutex
	stats Stats
	by    [kinds]cost // by Kind of worker
	loops int         // running loops
	since time.Time   // when Elapsed was last updated
}

// countRequest counts a completed request for the given number of samples, with its result or,
// if no worker completed it, its error.
func (m *meter) countRequest(samples int, out fetchResult, err error) {
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

func (m *meter) readCosts() [kinds]cost {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.by
}

func (m *meter) countDelivered(samples, skipped int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats.Skipped += skipped
	if samples > 0 {
		m.stats.Batches++
		m.stats.Samples += samples
	}
}

func (m *meter) addStall(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats.ConsumerStall += d
}

// countLoop counts the start of a loop over batches (1), or its end (-1).
func (m *meter) countLoop(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.updateElapsed()
	m.loops += n
}

// updateElapsed adds the time since the last call to Elapsed, once for each running loop. The
// caller must hold m.mu.
func (m *meter) updateElapsed() {
	now := time.Now()
	if m.loops > 0 {
		m.stats.Elapsed += now.Sub(m.since) * time.Duration(m.loops)
	}
	m.since = now
}

func (m *meter) readStats(workers, ready int) Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.updateElapsed()
	s := m.stats
	s.Workers, s.Ready = workers, ready
	s.WorkerStall = max(0, s.Elapsed*time.Duration(max(1, workers))-s.Busy)
	return s
}
