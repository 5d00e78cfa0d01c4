package top

import (
	"strings"

	"github.com/shoal-mp/shoal/cmd/internal/domains"
)

// span is the number of observations in a trend: two minutes at the default interval.
const span = 120

// A history records figures of past observations, for trends. The zero history is empty and
// ready to use. It must not be used concurrently.
type history struct {
	n      int // observations so far
	series map[string]*series
}

type series struct {
	first  int // index of the first observation
	values []float64
}

// add records the figures of a census. The series of a vanished object is kept while the trend
// would still show it.
func (h *history) add(c domains.Census) {
	if h.series == nil {
		h.series = make(map[string]*series)
	}
	h.push("CPUs", c.Machine.Utilisation)
	for _, d := range c.Domains {
		if d.Error != "" {
			continue
		}
		h.push(d.Address+" bytes", float64(d.Committed))
		h.push(d.Address+" allocs", d.AllocsPerSecond)
		h.push(d.Address+" copied", d.CopiedPerSecond)
		for _, p := range d.Processes {
			h.push(processKey(d, p.PID)+" holds", float64(p.Holds))
			h.push(processKey(d, p.PID)+" CPUs", p.CPUs)
		}
		for _, q := range d.Queues {
			h.push(d.Address+" "+q.Block+" rate", q.PutsPerSecond+q.GetsPerSecond)
			h.push(d.Address+" "+q.Block+" depth", float64(q.Depth))
			if q.Value != nil {
				h.push(valueKey(d, q), *q.Value)
			}
		}
	}
	h.n++
	for name, s := range h.series {
		if s.first+len(s.values) < h.n-span {
			delete(h.series, name)
		}
	}
}

func (h *history) push(name string, v float64) {
	s := h.series[name]
	if s == nil {
		s = &series{first: h.n}
		h.series[name] = s
	}
	for s.first+len(s.values) < h.n { // not listed in between
		s.values = append(s.values, 0)
	}
	s.values = append(s.values, v)
	if extra := len(s.values) - 2*span; extra > 0 {
		s.first += extra
		s.values = append(s.values[:0], s.values[extra:]...)
	}
}

// ramp holds the marks of a trend from the lowest value to the highest, by whether they must be
// ASCII.
var ramp = map[bool][]rune{false: []rune("▁▂▃▄▅▆▇█"), true: []rune("_.:-=+*#")}

// drawTrend draws the observations of a series before the one with index until in width columns,
// scaled to their maximum. Each column is the maximum of several observations. Columns before
// the start of the series are blank.
func (h *history) drawTrend(name string, width, until int, ascii bool) string {
	s := h.series[name]
	if s == nil || width <= 0 || until <= 0 {
		return strings.Repeat(" ", max(0, width))
	}
	each := max(1, (span+width-1)/width)
	columns, most := make([]float64, width), 0.0
	last := (until - 1) / each
	for i := range columns {
		columns[i] = -1
		from := (last - width + 1 + i) * each
		for at := max(from, s.first); at < min(from+each, until, s.first+len(s.values)); at++ {
			columns[i] = max(columns[i], s.values[at-s.first])
		}
		most = max(most, columns[i])
	}
	var b strings.Builder
	marks := ramp[ascii]
	for _, v := range columns {
		switch {
		case v < 0:
			b.WriteByte(' ')
		case v == 0:
			b.WriteRune(marks[0])
		default:
			b.WriteRune(marks[1+int(min(v/most, 1)*float64(len(marks)-2))])
		}
	}
	return b.String()
}
