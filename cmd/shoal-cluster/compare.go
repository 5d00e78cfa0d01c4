package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// A way is one implementation of a measured task. The ways of a comparison are measured in turn.
type way struct {
	name    string
	measure func(ctx context.Context) (float64, error) // returns the measured value
	// processes maps the names of the processes that do the work to their IDs. Process 0 is the
	// current process.
	processes map[string]int
}

// processorTimes returns the processor time used so far by each of the processes.
func (w way) processorTimes() (all map[string]time.Duration, err error) {
	all = make(map[string]time.Duration, len(w.processes))
	for name, pid := range w.processes {
		if all[name], err = sys.ProcessTimeOf(pid); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// measureCost runs one measurement, which must consist of n units. It returns its value and the
// processor time in µs for each unit, by the name of the process, and the sum as [total].
func (w way) measureCost(ctx context.Context, n float64) (value float64, each map[string]float64, err error) {
	before, err := w.processorTimes()
	if err != nil {
		return 0, nil, err
	}
	if value, err = w.measure(ctx); err != nil {
		return 0, nil, err
	}
	after, err := w.processorTimes()
	each = make(map[string]float64)
	for name, t := range after {
		each[name] = float64(t-before[name]) / 1e3 / n
		each[total] += each[name]
	}
	return value, each, err
}

// total is the name for the sum over all processes.
const total = "all"

// A comparison holds the medians of Shoal and of the other ways.
type comparison struct {
	Row     string             `json:"row"`
	Unit    string             `json:"unit"`
	Shoal   float64            `json:"shoal"`
	Against map[string]float64 `json:"against"`
	Ratio   map[string]float64 `json:"ratio"` // Shoal's value divided by each other value
	// CPU is the processor time (user and system) for each unit in µs, by way and process. CPURatio
	// is the total time of each way divided by the total time of Shoal.
	CPU      map[string]map[string]float64 `json:"cpu_us"`
	CPURatio map[string]float64            `json:"cpu_ratio"`
}

// compare measures the ways in turn and prints their medians. The first way must be Shoal's. row
// is the name of the row, and unit the unit of the measured values. Each measurement covers n
// units of work, by which the processor times are divided. One additional round before the first
// warms up all ways.
func (c *benchCommand) compare(ctx context.Context, row, unit string, n float64, ways ...way) error {
	rounds := c.Rounds
	if c.Quick {
		rounds = 1
	}
	values, times := make([][]float64, len(ways)), make([]map[string][]float64, len(ways))
	for round := range rounds + 1 {
		for i, w := range ways {
			v, each, err := w.measureCost(ctx, n)
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			if round == 0 {
				times[i] = make(map[string][]float64)
				continue
			}
			values[i] = append(values[i], v)
			for process, us := range each {
				times[i][process] = append(times[i][process], us)
			}
		}
	}
	r := comparison{row, unit, median(values[0]), make(map[string]float64), make(map[string]float64),
		make(map[string]map[string]float64), make(map[string]float64)}
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %.0f %s", row, r.Shoal, unit)
	for i, w := range ways {
		cpu := make(map[string]float64)
		for process, us := range times[i] {
			cpu[process] = median(us)
		}
		r.CPU[w.name] = cpu
		if i > 0 {
			other := median(values[i])
			r.Against[w.name], r.Ratio[w.name] = other, r.Shoal/other
			r.CPURatio[w.name] = cpu[total] / r.CPU[ways[0].name][total]
			fmt.Fprintf(&text, "; %s %.0f, %.2f of it", w.name, other, r.Shoal/other)
		}
	}
	text.WriteString("; µs of processor time for one:")
	for i, w := range ways {
		cpu := r.CPU[w.name]
		fmt.Fprintf(&text, " %s %.0f", w.name, cpu[total])
		if len(cpu) > 2 {
			for _, process := range slices.Sorted(maps.Keys(cpu)) {
				if process != total {
					fmt.Fprintf(&text, ", %s %.0f of it", process, cpu[process])
				}
			}
		}
		if i > 0 {
			fmt.Fprintf(&text, ", %.2f of ours", r.CPURatio[w.name])
		}
		text.WriteByte(';')
	}
	if c.JSON {
		return json.NewEncoder(os.Stdout).Encode(r)
	}
	_, err := fmt.Println(strings.TrimSuffix(text.String(), ";"))
	return err
}
