package service

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/data/internal/maker"
)

// Stats are the counts and times of a [Loader] since [Dial].
type Stats struct {
	Samples, Batches int           // delivered to the consumer
	Bytes            int           // total size of their tensors
	Elapsed          time.Duration // total time with a running loop
	Stall            time.Duration // part of Elapsed that the consumer waited for a batch
	Hosts            []HostStatus  // in order of the addresses
}

// A HostStatus is the state of a data host, as the trainer sees it.
type HostStatus struct {
	Addr      string
	Connected bool
	Asked     int   // requests without an answer
	Batches   int   // batches received from it
	Bytes     int   // total size of their tensors
	Losses    int   // number of lost connections
	Err       error // reason why it is not connected
}

// SamplesPerSecond returns the number of samples delivered per second of Elapsed, or 0 before
// the first loop.
func (s Stats) SamplesPerSecond() float64 { return ratePerSecond(s.Samples, s.Elapsed) }

func ratePerSecond(n int, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// String returns the Stats in one line.
func (s Stats) String() string {
	up := 0
	var lost []string
	for _, h := range s.Hosts {
		if h.Connected {
			up++
		} else {
			lost = append(lost, h.Addr)
		}
	}
	line := fmt.Sprintf("%d samples in %d batches, %.0f samples/s, %.1f MB/s, %.0f%% of the time waiting, %d of "+
		"%d data hosts",
		s.Samples, s.Batches, s.SamplesPerSecond(), ratePerSecond(s.Bytes, s.Elapsed)/1e6,
		100*s.Stall.Seconds()/max(s.Elapsed.Seconds(), 1e-9), up, len(s.Hosts))
	if len(lost) > 0 {
		line += ", without " + strings.Join(lost, ", ")
	}
	return line
}

// A meter accumulates [Stats]. Its methods may be called from several goroutines.
type meter struct {
	mu    sync.Mutex
	stats Stats
	loops int
	since time.Time
}

// startLoop records the start of a loop. The caller must call the returned function at its end.
func (m *meter) startLoop() func() {
	m.add(1)
	return func() { m.add(-1) }
}

func (m *meter) add(loops int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.updateElapsed()
	m.loops += loops
}

// updateElapsed adds the time since the last call if a loop was running. The caller must hold m.mu.
func (m *meter) updateElapsed() {
	now := time.Now()
	if m.loops > 0 {
		m.stats.Elapsed += now.Sub(m.since)
	}
	m.since = now
}

func (m *meter) addStall(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats.Stall += d
}

func (m *meter) countDelivered(b maker.Batch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats.Samples += b.Samples
	m.stats.Batches++
	m.stats.Bytes += nbytes(b)
}

func (m *meter) read() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.updateElapsed()
	return m.stats
}

// HostStats are the counts of a [Host] since [Listen].
type HostStats struct {
	Trainers         int // currently connected
	Samples, Batches int // sent
	Bytes            int // sent
	Hits             int // batches found in the cache
	Failed           int // batches that could not be made
	Held             int // bytes of batches being sent now
	MostHeld         int // maximum of Held
	Cached           int // bytes in the cache
	Dealt            int // batches assigned to Dynamic trainers and not acknowledged
	Acknowledged     int // batches of recent epochs acknowledged by Dynamic trainers
	Elapsed          time.Duration
}

// String returns the HostStats in one line.
func (s HostStats) String() string {
	return fmt.Sprintf("%d trainers, %d samples in %d batches, %.0f samples/s, %.1f MB/s, %d from the cache of "+
		"%.0f MB, %d failed",
		s.Trainers, s.Samples, s.Batches, ratePerSecond(s.Samples, s.Elapsed),
		ratePerSecond(s.Bytes, s.Elapsed)/1e6, s.Hits,
		float64(s.Cached)/1e6, s.Failed)
}

// Since returns the difference to earlier HostStats of the same Host, so that its String shows the
// rates of the period between them. Gauges such as Trainers keep their current value.
func (s HostStats) Since(earlier HostStats) HostStats {
	s.Samples -= earlier.Samples
	s.Batches -= earlier.Batches
	s.Bytes -= earlier.Bytes
	s.Hits -= earlier.Hits
	s.Failed -= earlier.Failed
	s.Elapsed -= earlier.Elapsed
	return s
}

// A hostMeter accumulates [HostStats]. Its methods may be called from several goroutines.
type hostMeter struct {
	mu    sync.Mutex
	stats HostStats
}

func (m *hostMeter) update(f func(s *HostStats)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(&m.stats)
}

func (m *hostMeter) addTrainers(n int) { m.update(func(s *HostStats) { s.Trainers += n }) }
func (m *hostMeter) countHit()         { m.update(func(s *HostStats) { s.Hits++ }) }
func (m *hostMeter) countFailed()      { m.update(func(s *HostStats) { s.Failed++ }) }

func (m *hostMeter) countSent(samples, bytes int) {
	m.update(func(s *HostStats) { s.Samples, s.Batches, s.Bytes = s.Samples+samples, s.Batches+1, s.Bytes+bytes })
}

func (m *hostMeter) addHeld(bytes int) {
	m.update(func(s *HostStats) { s.Held += bytes; s.MostHeld = max(s.MostHeld, s.Held) })
}

func (m *hostMeter) readHeld() (n int) {
	m.update(func(s *HostStats) { n = s.Held })
	return n
}

// Stats returns the counts since [Listen].
func (h *Host) Stats() (s HostStats) {
	h.meter.update(func(all *HostStats) { s = *all })
	s.Elapsed = time.Since(h.begin)
	h.cache.mu.Lock()
	s.Cached = h.cache.bytes
	h.cache.mu.Unlock()
	s.Dealt, s.Acknowledged = h.dealer.countBatches()
	return s
}
