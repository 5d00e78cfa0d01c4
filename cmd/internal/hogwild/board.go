package hogwild

import (
	"fmt"
	"io"
	"sync/atomic"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// A board displays the workers' reports during training. Only one goroutine may use it.
type board interface {
	showReport(r report)
	close() // leaves the display as it is
}

// newBoard returns progress bars if standard error is a terminal and lines otherwise. totals are
// the workers' numbers of samples in the whole run, by rank. The caller must call close.
func newBoard(o *Options, totals []int) board {
	if o.drawsBars() {
		return newProgressBars(o.Stderr, totals, o.Epochs)
	}
	return lines{o.log()}
}

// lines prints the lines of the PyTorch example, with the rank after the process ID.
type lines struct{ w io.Writer }

func (l lines) showReport(r report) {
	fmt.Fprintf(l.w, "%d\trank %d\tTrain Epoch: %d [%d/%d (%d%%)]\tLoss: %.6f\n",
		r.PID, r.Rank, r.Epoch, r.Done, r.Of, r.percentDone(), r.Loss)
}

func (l lines) close() {}

// progressBars shows a progress bar for each worker.
type progressBars struct {
	all *mpb.Progress
	of  []*bar
}

type bar struct {
	*mpb.Bar
	last atomic.Pointer[report] // read by the library's render goroutine
}

func newProgressBars(w io.Writer, totals []int, epochs int) *progressBars {
	b := &progressBars{all: mpb.New(mpb.WithOutput(w), mpb.WithWidth(80), mpb.WithAutoRefresh())}
	for rank, total := range totals {
		one := new(bar)
		one.Bar = b.all.AddBar(int64(total),
			mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return one.headText(rank) },
				decor.WCSyncSpaceR)),
			mpb.AppendDecorators(
				decor.Percentage(decor.WCSyncSpace),
				decor.Any(func(decor.Statistics) string { return one.tailText(epochs) }, decor.WCSyncSpace)))
		b.of = append(b.of, one)
	}
	return b
}

func (b *bar) headText(rank int) string {
	r := b.last.Load()
	if r == nil {
		return fmt.Sprintf("worker %d", rank)
	}
	return fmt.Sprintf("worker %d, pid %d", rank, r.PID)
}

func (b *bar) tailText(epochs int) string {
	r := b.last.Load()
	if r == nil {
		return "starting"
	}
	return fmt.Sprintf("epoch %d/%d, loss %.4f", r.Epoch, epochs, r.Loss)
}

func (b *progressBars) showReport(r report) {
	if r.Rank < 0 || r.Rank >= len(b.of) {
		return
	}
	one := b.of[r.Rank]
	one.last.Store(&r)
	one.SetCurrent(int64(r.Total))
}

func (b *progressBars) close() {
	for _, one := range b.of {
		one.Abort(false) // no-op for a completed bar
	}
	b.all.Wait()
}
