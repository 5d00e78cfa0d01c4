package service

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/data/internal/maker"
)

// Stats are counts and times of a Loader since Dial.
type Stats struct {
	Samples, Batches int           // delivered
	Bytes            int           // of their tensors
	Elapsed          time.Duration // time of all loops over batches
	Stall            time.Duration // part of Elapsed in which the consumer waited for a batch
	Hosts            []HostStatus  // in the order of the addresses
}

// A HostStatus is what became of a data host.
type HostStatus struct {
	Addr      string
	Connected bool
	Asked     int   // batches that it was asked for and has not sent
	Batches   int   // that it has sent
	Bytes     int   // of their tensors
	Losses    int   // how often the connection was lost
	Err       error // why it is not connected
}

// SamplesPerSecond returns how many samples the consumer got a second.
func (s Stats) SamplesPerSecond() float64 { return perSecond(s.Samples, s.Elapsed) }

func perSecond(n int, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// String returns one line.
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
	line := fmt.Sprintf("%d samples in %d batches, %.0f samples/s, %.1f MB/s, %.0f%% of the time waiting, %d of %d data hosts",
		s.Samples, s.Batches, s.SamplesPerSecond(), perSecond(s.Bytes, s.Elapsed)/1e6,
		100*s.Stall.Seconds()/max(s.Elapsed.Seconds(), 1e-9), up, len(s.Hosts))
	if len(lost) > 0 {
		line += ", without " + strings.Join(lost, ", ")
	}
	return line
}

// A meter counts for Stats.
type meter struct {
	mu    sync.Mutex
	stats Stats
	loops int
	since time.Time
}

// loop begins a loop and returns its end.
func (m *meter) loop() func() {
	m.add(1)
	return func() { m.add(-1) }
}

func (m *meter) add(loops int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pass()
	m.loops += loops
}

// pass adds the time since it was last called. mu is held.
func (m *meter) pass() {
	now := time.Now()
	if m.loops > 0 {
		m.stats.Elapsed += now.Sub(m.since)
	}
	m.since = now
}

func (m *meter) waited(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats.Stall += d
}

func (m *meter) delivered(b maker.Batch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats.Samples += b.Samples
	m.stats.Batches++
	m.stats.Bytes += nbytes(b)
}

func (m *meter) read() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pass()
	return m.stats
}

// HostStats are counts of a Host since Listen.
type HostStats struct {
	Trainers         int // connected now
	Samples, Batches int // sent
	Bytes            int // sent
	Hits             int // batches that were in the cache
	Failed           int // batches that could not be made
	Held             int // bytes of batches that are being sent now
	MostHeld         int // the largest Held
	Cached           int // bytes in the cache
	Dealt            int // batches that Dynamic trainers have and have not acknowledged
	Acknowledged     int // batches of the latest epochs that Dynamic trainers have acknowledged
	Elapsed          time.Duration
}

// String returns one line.
func (s HostStats) String() string {
	return fmt.Sprintf("%d trainers, %d samples in %d batches, %.0f samples/s, %.1f MB/s, %d from the cache of %.0f MB, %d failed",
		s.Trainers, s.Samples, s.Batches, perSecond(s.Samples, s.Elapsed), perSecond(s.Bytes, s.Elapsed)/1e6, s.Hits,
		float64(s.Cached)/1e6, s.Failed)
}

// Since returns what has happened since earlier Stats of the same Host: its String has the rates of
// that time.
func (s HostStats) Since(earlier HostStats) HostStats {
	s.Samples -= earlier.Samples
	s.Batches -= earlier.Batches
	s.Bytes -= earlier.Bytes
	s.Hits -= earlier.Hits
	s.Failed -= earlier.Failed
	s.Elapsed -= earlier.Elapsed
	return s
}

// A hostMeter counts for HostStats.
type hostMeter struct {
	mu    sync.Mutex
	stats HostStats
}

func (m *hostMeter) count(f func(s *HostStats)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(&m.stats)
}

func (m *hostMeter) trainer(n int) { m.count(func(s *HostStats) { s.Trainers += n }) }
func (m *hostMeter) hit()          { m.count(func(s *HostStats) { s.Hits++ }) }
func (m *hostMeter) failed()       { m.count(func(s *HostStats) { s.Failed++ }) }

func (m *hostMeter) sent(samples, bytes int) {
	m.count(func(s *HostStats) { s.Samples, s.Batches, s.Bytes = s.Samples+samples, s.Batches+1, s.Bytes+bytes })
}

func (m *hostMeter) holds(bytes int) {
	m.count(func(s *HostStats) { s.Held += bytes; s.MostHeld = max(s.MostHeld, s.Held) })
}

func (m *hostMeter) held() (n int) {
	m.count(func(s *HostStats) { n = s.Held })
	return n
}

// Stats returns counts so far.
func (h *Host) Stats() (s HostStats) {
	h.meter.count(func(all *HostStats) { s = *all })
	s.Elapsed = time.Since(h.begin)
	h.cache.mu.Lock()
	s.Cached = h.cache.bytes
	h.cache.mu.Unlock()
	s.Dealt, s.Acknowledged = h.dealer.counts()
	return s
}
