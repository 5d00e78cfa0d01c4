//go:build shoalcrash

package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// benches is the number of domains that are tested in parallel.
const benches = 2

// A client runs a [bench] process and passes trials to it, one at a time. It starts a new one
// after a violation, because the domain is then corrupt.
type client struct {
	arg     string
	disable string
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	trials  int
}

// benchLife is the number of trials in one domain. The domain grows with every trial that creates
// blocks.
const benchLife = 100

func (c *client) start() error {
	c.cmd = exec.Command("/proc/self/exe", "bench", c.arg)
	c.cmd.Env = append(os.Environ(), "SHOAL_DISABLE="+c.disable)
	if c.disable == "" {
		c.cmd.Stderr = os.Stderr
	}
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	c.in, c.out = in, bufio.NewReader(out)
	return c.cmd.Start()
}

func (c *client) close() {
	if c.cmd != nil {
		c.in.Close()
		c.cmd.Wait()
		c.cmd = nil
	}
}

func (c *client) try(t trial) *verdict {
	v := &verdict{}
	if c.cmd == nil {
		if err := c.start(); err != nil {
			return &verdict{Wrong: []string{err.Error()}}
		}
	}
	line, _ := json.Marshal(t)
	c.in.Write(append(line, '\n'))
	line, err := c.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, v)
	}
	if err != nil {
		v.Wrong = append(v.Wrong, "the survivor died: "+err.Error())
	}
	if c.trials++; len(v.Wrong) > 0 || c.trials%benchLife == 0 {
		c.close()
	}
	return v
}

// A plan is one run of all trials. It counts and prints their violations.
type plan struct {
	arg   string
	funcs map[string]string // functions by site
	kills atomic.Int64
	good  atomic.Int64
	// stops with a victim that did not reach its point, because another process was faster
	unreached atomic.Int64
	mu        sync.Mutex
	killed    map[string]bool // "file.go:line phase" of each death
	failed    int
}

// all runs the trials on several benches at once and passes each verdict to f, which is called
// from several goroutines. name is for the progress on stderr.
func (p *plan) all(name string, trials []trial, f func(trial, *verdict)) {
	next, done := make(chan trial), atomic.Int64{}
	var wg sync.WaitGroup
	for range benches {
		wg.Go(func() {
			c := &client{arg: p.arg}
			defer c.close()
			for t := range next {
				v := c.try(t)
				p.count(t, v)
				f(t, v)
				if n := done.Add(1); n%50 == 0 || int(n) == len(trials) {
					fmt.Fprintf(os.Stderr, "\r%-24s %d of %d ", name, n, len(trials))
				}
			}
		})
	}
	for _, t := range trials {
		next <- t
	}
	close(next)
	wg.Wait()
	fmt.Fprintln(os.Stderr)
}

func (p *plan) count(t trial, v *verdict) {
	p.kills.Add(int64(v.Kills))
	if len(v.Wrong) == 0 {
		p.good.Add(int64(v.Kills))
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed++
	if p.failed <= 40 {
		fmt.Fprintf(os.Stderr, "\nFAIL %s at %s %s %d, reaper %+v, stop %q:\n\t%s\n", t.Scenario, t.Site, t.Phase,
			t.Nth, t.Second, t.Stop,
			strings.Join(v.Wrong, "\n\t"))
	}
}

func (p *plan) died(site, phase string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killed[site+" "+phase] = true
}

// pointsMain implements make crashpoints. arg has its flags, and arguments that restrict it to
// scenarios with names that contain them. It returns an error if there is a violation, or a
// point at which no process died.
func pointsMain(arg string) error {
	fs := flag.NewFlagSet("points", flag.ContinueOnError)
	extent := fs.String("stops", eachPoint, "stops as well: at "+eachPoint+" once, "+allPoints+
		" of each scenario, or "+noPoints)
	if err := fs.Parse(strings.Fields(arg)); err != nil {
		return err
	}
	if !slices.Contains([]string{eachPoint, allPoints, noPoints}, *extent) {
		return fmt.Errorf("-stops %q: want %s, %s or %s", *extent, eachPoint, allPoints, noPoints)
	}
	only := strings.Join(fs.Args(), " ")
	sites, err := staticSites(".", "internal/arena", "internal/arena/layout", "internal/arena/park", "ipc")
	if err != nil {
		return err
	}
	known, _ := json.Marshal(sites)
	p := &plan{arg: string(known), killed: make(map[string]bool)}
	p.funcs = make(map[string]string)
	for _, s := range sites {
		p.funcs[s.At] = s.Func
	}
	first := p.first(only)
	if len(first) == 0 {
		return fmt.Errorf("no scenario has %q in its name", only)
	}
	died := func(t trial, v *verdict) {
		if v.Killed {
			p.died(t.Site, t.Phase)
		}
	}
	p.all("deaths", first, died)
	stops := p.stops(first, *extent)
	p.all("stops", stops, func(t trial, v *verdict) {
		if !v.Stopped && len(v.Wrong) == 0 {
			p.unreached.Add(1)
		}
	})
	second := p.second(first)
	p.all("deaths of the reaper", second, func(t trial, v *verdict) {
		if v.SecondKilled {
			p.died(t.Second.Site, t.Second.Phase)
		}
	})
	for range rareRounds {
		missed := p.missed(sites)
		if len(missed) == 0 || only != "" {
			break
		}
		rare := slices.DeleteFunc(p.first(only), func(t trial) bool { return missed[t.Site+" "+t.Phase] == "" })
		p.all("rare points", rare, died)
		first = append(first, rare...)
	}
	caught := 0
	if only == "" {
		caught, err = p.branches(first)
	}
	return errors.Join(err, p.report(sites, len(first)+len(second), len(stops), caught, only))
}

// rareRounds is the number of attempts to reach the points that were missed. Some of them depend on
// the relative speed of processes.
const rareRounds = 20

// missed returns the points, as "file.go:line phase", at which no process died, with a
// description of each.
func (p *plan) missed(sites []site) map[string]string {
	missed := make(map[string]string)
	for _, s := range sites {
		for _, phase := range []string{"before", "after"} {
			if at := s.At + " " + phase; !p.killed[at] {
				missed[at] = fmt.Sprintf("%s (%s in %s)", at, s.Method, s.Func)
			}
		}
	}
	return missed
}

// first runs once each scenario with only in its name, and returns a trial with a death for each
// recorded write, within the limits [scenario].most and [scenario].only. It prints and counts
// failures as [plan.all] does for all trials.
func (p *plan) first(only string) (trials []trial) {
	var record []trial
	for _, name := range slices.Sorted(maps.Keys(scenarios)) {
		if strings.Contains(name, only) {
			record = append(record, trial{Scenario: name})
		}
	}
	p.all("scenarios", record, func(t trial, v *verdict) {
		most := cmp.Or(scenarios[t.Scenario].most, 3)
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, at := range slices.Sorted(maps.Keys(v.Hits)) {
			site, phase, _ := strings.Cut(at, " ")
			if only := scenarios[t.Scenario].only; only != "" && p.funcs[site] != only {
				continue
			}
			for n := range min(v.Hits[at], most) {
				trials = append(trials, trial{Scenario: t.Scenario, Site: site, Phase: phase, Nth: n + 1,
					Auto: len(trials)%2 == 0})
			}
		}
	})
	return trials
}

// second reaps each first death in another process, records the reaper's writes, and returns
// trials with deaths of the reaper: up to three first deaths for each of its points.
func (p *plan) second(first []trial) (trials []trial) {
	var record []trial
	for _, t := range first {
		if t.Nth == 1 && t.Phase == "after" && scenarios[t.Scenario].contend == nil && scenarios[t.Scenario].most != 1 {
			t.Second = &point{}
			record = append(record, t)
		}
	}
	tried := make(map[string]int)
	p.all("reapers", record, func(t trial, v *verdict) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, at := range slices.Sorted(maps.Keys(v.SecondHits)) {
			site, phase, _ := strings.Cut(at, " ")
			for n := range min(v.SecondHits[at], 3) {
				key := fmt.Sprint(at, n)
				if tried[key]++; tried[key] > 3 {
					continue
				}
				t.Second = &point{site, phase, n + 1}
				trials = append(trials, t)
			}
		}
	})
	return trials
}

func (p *plan) report(sites []site, scenarios, stops, caught int, only string) error {
	missed := slices.Collect(maps.Values(p.missed(sites)))
	static := make(map[string]bool)
	for _, s := range sites {
		static[s.At] = true
	}
	for at := range p.killed {
		if site, _, _ := strings.Cut(at, " "); !static[site] {
			missed = append(missed, at+" is not in the static list")
		}
	}
	slices.Sort(missed)
	out, _ := json.Marshal(map[string]any{
		"points": len(p.killed), "scenarios": scenarios, "kills": p.kills.Load(), "recovered": p.good.Load(),
		"static_write_sites": len(sites), "branches": caught, "failed": p.failed,
		"stops": stops - int(p.unreached.Load()),
	})
	fmt.Printf("%s\n", out)
	if len(missed) > 0 && only == "" {
		return fmt.Errorf("nobody died at:\n\t%s", strings.Join(missed, "\n\t"))
	}
	if n := int(p.unreached.Load()); n > stops/4 {
		return fmt.Errorf("%d of %d processes did not come to where they should be stopped", n, stops)
	}
	if p.failed > 0 {
		return fmt.Errorf("%d trials failed", p.failed)
	}
	return nil
}
