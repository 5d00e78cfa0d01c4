package hogwild

import (
	"io"
	"time"
)

// What the tests see of the inside.
type Report = report

var Check = (*Options).check

// ShowLines and ShowBars show reports to w, as a run would.
func ShowLines(w io.Writer, reports ...Report) { showAll(lines{w}, reports) }

func ShowBars(w io.Writer, totals []int, epochs int, reports ...Report) {
	showAll(newProgressBars(w, totals, epochs), reports)
}

func showAll(b board, reports []Report) {
	for _, r := range reports {
		b.showReport(r)
	}
	b.close()
}

// Heard puts what workers reported into a result.
func (r *Result) Heard(workers int, seconds float64, reports ...Report) {
	j := newJournal(workers)
	for _, one := range reports {
		j.add(one)
	}
	r.storeReports(j, time.Duration(seconds*float64(time.Second)))
}

// Write is what a run does with its result.
func (r *Result) Write(w io.Writer, asJSON bool) error { return r.write(w, asJSON) }
