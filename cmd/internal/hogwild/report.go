package hogwild

import (
	"os"

	"github.com/shoal-mp/shoal/internal/sys"
)

// A report is what a worker says of itself from time to time, over a queue.
type report struct {
	Rank, PID   int
	Epoch       int // from 1
	Done, Of    int // samples of this epoch
	Total       int // samples since the start
	Loss        float64
	Accuracy    float64 // share of the digits in the last batch that were recognised
	Peak, Alone int64   // bytes, see memory
}

// percent is how much of the epoch is done.
func (r report) percent() int {
	if r.Of == 0 {
		return 100
	}
	return 100 * r.Done / r.Of
}

// memory returns what this process had mapped at most, shared memory included, and what of it is
// its own now. They are 0 where the system does not say.
func memory() (peak, alone int64) {
	m, err := sys.ResidentMemory(os.Getpid())
	if err != nil {
		return 0, 0
	}
	return m.Peak, m.Private
}

// A journal is what was heard of all workers: the last report of each.
type journal struct{ last []report }

func newJournal(workers int) *journal { return &journal{make([]report, workers)} }

func (j *journal) add(r report) {
	if r.Rank >= 0 && r.Rank < len(j.last) {
		j.last[r.Rank] = r
	}
}

// mean is that of one number of the workers which have reported.
func (j *journal) mean(of func(report) float64) float64 {
	sum, n := 0.0, 0
	for _, r := range j.last {
		if r.Total > 0 {
			sum += of(r)
			n++
		}
	}
	return sum / float64(max(n, 1))
}

// samples is how many were trained on, by all workers.
func (j *journal) samples() (n int) {
	for _, r := range j.last {
		n += r.Total
	}
	return n
}

// column collects one number of each worker.
func (j *journal) column(of func(report) int64) []int64 {
	all := make([]int64, len(j.last))
	for i, r := range j.last {
		all[i] = of(r)
	}
	return all
}
