package bench

import (
	"context"
	"fmt"
	"io"
)

// What the tests of the harness itself look at.
var (
	Median   = median
	Spread   = spread
	Quantile = quantile
	Quantity = formatQuantity
)

// Measure measures cases of which no probe needs a machine.
func Measure(ctx context.Context, rounds int, emit func(Result) error, cases ...Case) error {
	s := &session{step: func(string) {}, emit: emit}
	return s.measure(ctx, "test", group{rounds: rounds, cases: cases})
}

// RunNeeding runs a group with one row that needs a library. The peer lacks the libraries in
// missing.
func RunNeeding(ctx context.Context, library string, missing map[string]string, emit func(Result) error,
	note func(string)) error {
	s := &session{peer: &peer{hello: hello{Missing: missing}}, step: func(string) {}, emit: emit}
	h := &environment{note: func(format string, values ...any) { note(fmt.Sprintf(format, values...)) }}
	return s.runGroup(ctx, "test", h, func(context.Context, *environment) (group, error) {
		one := &Probe{Measure: func(context.Context) (float64, error) { return 1, nil }}
		return group{rounds: 1, needs: library, cases: []Case{{Name: "row", Unit: Nanoseconds, Ours: one}}}, nil
	})
}

// Write emits rows as Run does.
func Write(out, log io.Writer, asJSON bool, rows ...Result) error {
	emit := rowWriter(out, log, asJSON, "header\n", new(progress))
	for _, r := range rows {
		if err := emit(r); err != nil {
			return err
		}
	}
	return nil
}

// Sides is what peers say that they can do with a result.
type Sides = variant

// NewSide returns what a peer's variant needed.
func NewSide(name string, samples ...float64) Sides { return variant{name, samples} }

// Against adds a peer to a result.
func (r *Result) Against(variants ...Sides) { r.setPeer(variants) }

// Targets.
var (
	OverFloor    = overFloor
	ByDistance   = byDistance
	AtMost       = atMost
	AtLeast      = atLeast
	BesidesFloor = aboveFloor
	AsFlatAs     = atMostTimes
	TimesPeer    = timesPeer
	Both         = bothTargets

	MedianRow = medianRow
)
