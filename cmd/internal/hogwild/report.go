package hogwild

import (
	"os"

	"github.com/shoal-mp/shoal/internal/sys"
)

// A report is sent by a worker over a queue at regular intervals.
type report struct {
	Rank, PID   int
	Epoch       int // first is 1
	Done, Of    int // samples of this epoch
	Total       int // samples since the start
	Loss        float64
	Accuracy    float64 // correct share of the last batch
	Peak, Alone int64   // bytes, see memoryUsage
}

// percentDone returns the progress of the epoch in percent. It is 100 for an epoch without
// samples.
func (r report) percentDone() int {
	if r.Of == 0 {
		return 100
	}
	return 100 * r.Done / r.Of
}

// memoryUsage returns the peak resident memory of this process in bytes, shared memory included,
// and its current private memory. Both are 0 if the system does not report them.
func memoryUsage() (peak, alone int64) {
	m, err := sys.ResidentMemory(os.Getpid())
	if err != nil {
		return 0, 0
	}
	return m.Peak, m.Private
}

// A journal holds the last report of each worker. It must not be used concurrently.
type journal struct{ last []report }

func newJournal(workers int) *journal { return &journal{make([]report, workers)} }

func (j *journal) add(r report) {
	if r.Rank >= 0 && r.Rank < len(j.last) {
		j.last[r.Rank] = r
	}
}

// meanOf returns the mean of one figure over the workers that have reported, or 0 if none has.
func (j *journal) meanOf(of func(report) float64) float64 {
	sum, n := 0.0, 0
	for _, r := range j.last {
		if r.Total > 0 {
			sum += of(r)
			n++
		}
	}
	return sum / float64(max(n, 1))
}

// totalSamples returns the number of samples trained on by all workers.
func (j *journal) totalSamples() (n int) {
	for _, r := range j.last {
		n += r.Total
	}
	return n
}

// columnOf returns one figure for each worker, by rank. It is 0 for a worker that has not
// reported.
func (j *journal) columnOf(of func(report) int64) []int64 {
	all := make([]int64, len(j.last))
	for i, r := range j.last {
		all[i] = of(r)
	}
	return all
}
