package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

//go:embed testdata/allreduce.c
var sourceC []byte

//go:embed testdata/allreduce.py
var sourcePython []byte

// benchCommand implements shoal bench cluster.
type benchCommand struct {
	Suites struct {
		Names []string `positional-arg-name:"suite" description:"cluster"`
	} `positional-args:"yes"`
	JSON   bool   `long:"json" description:"Print one JSON object per line."`
	Python string `long:"python" default:"python3" value-name:"PROGRAM" description:"The Python interpreter with PyTorch."`
	Rounds int    `long:"rounds" default:"5" value-name:"N" description:"How many times to measure each implementation, in alternation; rows are medians."`
	//lint:ignore SA5008 package flags takes a default for each value
	Ranks []int `long:"ranks" default:"2" default:"4" value-name:"N" description:"Number of ranks; may be repeated."`
	//lint:ignore SA5008 and a choice for each name
	Rows  []string `long:"rows" default:"mpi" default:"service" default:"tensor" choice:"mpi" choice:"service" choice:"tensor" value-name:"NAME" description:"Rows to measure; may be repeated."`
	Quick bool     `long:"quick" description:"Run every row once, briefly: checks that everything runs; the values are meaningless."`
}

// A row holds the time of one all-reduce for one size and engine, in nanoseconds. A time is 0 if it
// could not be measured.
type row struct {
	Engine string  `json:"engine"`
	Ranks  int     `json:"ranks"`
	Bytes  int     `json:"bytes"`
	Shoal  float64 `json:"shoal_ns"`   // as dist.Init chooses: shared memory
	MPI    float64 `json:"library_ns"` // through the MPI library
	C      float64 `json:"c_ns,omitempty"`
	Gloo   float64 `json:"gloo_ns,omitempty"`
}

// A size is a tensor size in bytes and the number of all-reduces of it in one run.
type size struct{ bytes, rounds int }

// A stack is an MPI library with its launcher and its compiler.
type stack struct {
	name, launcher, compiler string
	flags                    []string
}

var stacks = []stack{
	{"Open MPI", "mpirun.openmpi", "mpicc.openmpi", []string{"--oversubscribe", "--allow-run-as-root"}},
	{"MPICH", "mpirun.mpich", "mpicc.mpich", nil},
}

// Run measures the selected rows. Within a row, the implementations are measured in turn, and the
// medians are printed.
func (c *benchCommand) Run(ctx context.Context) error {
	if c.Rounds < 1 {
		return fmt.Errorf("--rounds %d: want at least 1", c.Rounds)
	}
	for _, what := range []struct {
		name    string
		measure func(context.Context) error
	}{{"mpi", c.measureAllReduce}, {"service", c.compareService}, {"tensor", c.measureTensor}} {
		if !slices.Contains(c.Rows, what.name) {
			continue
		}
		if err := what.measure(ctx); err != nil {
			return fmt.Errorf("rows %s: %w", what.name, err)
		}
	}
	return nil
}

// measureAllReduce measures the installed MPI libraries and prints their rows. It returns an error
// if none is installed.
func (c *benchCommand) measureAllReduce(ctx context.Context) error {
	sizes, rounds := []size{{4, 1000}, {1 << 20, 100}, {64 << 20, 4}}, c.Rounds
	if c.Quick {
		sizes, rounds = []size{{4, 20}, {1 << 20, 2}, {64 << 20, 1}}, 1
	}
	dir, err := os.MkdirTemp("", "shoal-cluster-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	found := 0
	for _, s := range stacks {
		if _, err := exec.LookPath(s.launcher); err != nil {
			fmt.Fprintf(os.Stderr, "%s not measured: %v: install it with scripts/mpi --install\n", s.name, err)
			continue
		}
		found++
		for _, ranks := range c.Ranks {
			rows, err := c.measure(ctx, s, ranks, sizes, rounds, dir)
			if err != nil {
				return err
			}
			if err := c.print(rows, found == 1 && ranks == c.Ranks[0]); err != nil {
				return err
			}
		}
	}
	if found == 0 {
		return errors.New("no MPI library found")
	}
	return nil
}

// measure measures all-reduce operations with one MPI library and the given number of ranks, and
// returns a row for each size with the medians of all rounds. It measures Shoal with and without
// MPI, a loop in C, and PyTorch's gloo. The time of C is 0 if the loop cannot be built, and the
// time of gloo if PyTorch is missing. dir must be a directory for temporary files.
func (c *benchCommand) measure(ctx context.Context, s stack, ranks int, sizes []size, rounds int,
	dir string) ([]row, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var pairs []string
	for _, z := range sizes {
		pairs = append(pairs, strconv.Itoa(z.bytes), strconv.Itoa(z.rounds))
	}
	launch := slices.Concat([]string{s.launcher}, s.flags, []string{"-n", strconv.Itoa(ranks)})
	rank := slices.Concat(launch, []string{self, "rank"}, pairs)
	ways := [][]string{rank, append([]string{"env", "SHOAL_DIST_ENGINE=mpi"}, rank...), nil, nil}
	loop := filepath.Join(dir, strings.ReplaceAll(s.name, " ", ""))
	if err := compile(ctx, s.compiler, loop, dir); err != nil {
		fmt.Fprintf(os.Stderr, "cannot build the C loop with %s: %v\n", s.name, err)
	} else {
		ways[2] = slices.Concat(launch, []string{loop}, pairs)
	}
	script := filepath.Join(dir, "allreduce.py")
	if err := os.WriteFile(script, sourcePython, 0o600); err != nil {
		return nil, err
	}
	if exec.CommandContext(ctx, c.Python, "-c", "import torch").Run() == nil {
		ways[3] = []string{c.Python, script, strconv.Itoa(ranks), ""}
		ways[3] = append(ways[3], pairs...)
	}
	times := make([][][]float64, len(ways)) // by implementation, size and round
	for i := range times {
		times[i] = make([][]float64, len(sizes))
	}
	for round := range rounds {
		for i, way := range ways {
			if way == nil {
				continue
			}
			if i == 3 {
				way = slices.Clone(way)
				way[3] = filepath.Join(dir, fmt.Sprintf("meet-%s-%d-%d", filepath.Base(loop), ranks, round))
			}
			got, err := run(ctx, way, len(sizes))
			if err != nil {
				return nil, err
			}
			for k, ns := range got {
				times[i][k] = append(times[i][k], ns)
			}
		}
	}
	var rows []row
	for k, z := range sizes {
		rows = append(rows, row{s.name, ranks, z.bytes, median(times[0][k]), median(times[1][k]),
			median(times[2][k]), median(times[3][k])})
	}
	return rows, nil
}

func compile(ctx context.Context, compiler, to, dir string) error {
	source := filepath.Join(dir, "allreduce.c")
	if err := os.WriteFile(source, sourceC, 0o600); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, compiler, "-O2", "-o", to, source).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// run runs one command and returns the n numbers that it prints. It returns an error if the command
// prints anything else.
func run(ctx context.Context, way []string, n int) (times []float64, err error) {
	cmd := exec.CommandContext(ctx, way[0], way[1:]...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%q: %w\n%s", way, err, errs.String())
	}
	for _, word := range strings.Fields(string(out)) {
		ns, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return nil, fmt.Errorf("%q printed %q", way, out)
		}
		times = append(times, ns)
	}
	if len(times) != n {
		return nil, fmt.Errorf("%q printed %q: want %d numbers", way, out, n)
	}
	return times, nil
}

func median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// print prints the rows of one library, as JSON if c.JSON is set and as a table otherwise. If first
// is set, the table begins with the column titles.
func (c *benchCommand) print(rows []row, first bool) error {
	if c.JSON {
		for _, r := range rows {
			if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(os.Stdout, 10, 0, 2, ' ', tabwriter.AlignRight)
	if first {
		fmt.Fprintln(w, "engine\tranks\tbytes\tshoal µs\tby MPI µs\tC µs\tgloo µs\tMPI of C\tshoal of gloo\t")
	}
	for _, r := range rows {
		of := func(own, other float64) string {
			if other == 0 {
				return "-"
			}
			return fmt.Sprintf("%.2f", own/other)
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t%s\t%s\t\n", r.Engine, r.Ranks, r.Bytes, r.Shoal/1e3,
			r.MPI/1e3, r.C/1e3, r.Gloo/1e3, of(r.MPI, r.C), of(r.Shoal, r.Gloo))
	}
	return w.Flush()
}
