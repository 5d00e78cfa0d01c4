package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/shoal-mp/shoal/cmd/internal/beside"
	"github.com/shoal-mp/shoal/cmd/internal/subcommand"
	"github.com/shoal-mp/shoal/cmd/internal/words"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/procfs"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/doctor"
)

// doctorCommand implements shoal doctor.
type doctorCommand struct {
	Span time.Duration `long:"span" default:"1s" value-name:"DURATION" description:"How long to observe the CPUs."`
	JSON bool          `long:"json" description:"Print one JSON object."`

	PID   *int `long:"pid" value-name:"PID" description:"Explain what is wrong with the PyTorch job of this process, and exit with status 1 if something is."`
	Jobs  bool `long:"jobs" description:"Explain what is wrong with each PyTorch job of this user, and exit with status 1 if something is."`
	Clean bool `long:"clean" description:"List the shared memory of PyTorch that belongs to dead processes."`
	Yes   bool `long:"yes" description:"With --clean, remove it."`
	Check *int `long:"check" value-name:"PID" description:"Audit the shared memory of this process while it runs, and exit with status 1 if it is corrupt."`
}

// Run examines the machine and prints a report on standard output, followed by the report on GPUs.
// With --check it audits the shared memory of one process instead, with --pid and --jobs it
// explains the faults of PyTorch jobs, and with --clean it lists the names that they have left in
// shared memory; --yes also removes the names that are proven to be leaked. The error wraps
// [errFaults] or [doctor.ErrViolations] if --pid, --jobs or --check found any, and
// [subcommand.ErrOption] if a flag is invalid.
func (c *doctorCommand) Run(ctx context.Context) error {
	if c.Span <= 0 {
		return fmt.Errorf("%w: --span %v: want a positive duration", subcommand.ErrOption, c.Span)
	}
	if err := c.checkFlags(); err != nil {
		return err
	}
	switch {
	case c.PID != nil:
		return c.explainJob(ctx, *c.PID)
	case c.Jobs:
		return c.explainJobs(ctx)
	case c.Clean:
		return diagnose.Clean(os.Stdout, procfs.Machine, "/dev/shm", c.Yes)
	}
	if c.Check != nil {
		err := doctor.Check(ctx, os.Stdout, *c.Check, c.JSON)
		if errors.Is(err, doctor.ErrProcess) {
			err = fmt.Errorf("%w: --check: %w", subcommand.ErrOption, err)
		}
		return err
	}
	report, err := doctor.Examine(ctx, c.Span)
	if err != nil {
		return err
	}
	jobs, err := diagnose.ExamineAll(ctx, diagnose.Options{Span: c.Span})
	if err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if c.JSON {
		report.GPUs, report.Jobs = gpuReport(ctx), jobs
		return json.NewEncoder(os.Stdout).Encode(report)
	}
	if err := report.Print(os.Stdout); err != nil {
		return err
	}
	for _, job := range jobs {
		words.Fprintf(os.Stdout, "\nPyTorch: %s\n", job.Verdict)
	}
	said, err := examineGPUs(ctx)
	if err != nil {
		said = []byte("GPUs were not examined: " + err.Error() + "\n")
	}
	_, err = fmt.Printf("\n%s", said)
	return err
}

// errFaults means that a PyTorch job has a fault.
var errFaults = errors.New("a PyTorch job has a fault")

// checkFlags returns an error that wraps [subcommand.ErrOption] if flags exclude each other.
func (c *doctorCommand) checkFlags() error {
	modes := 0
	for _, set := range []bool{c.PID != nil, c.Jobs, c.Clean, c.Check != nil} {
		if set {
			modes++
		}
	}
	if modes > 1 {
		return fmt.Errorf("%w: want at most one of --pid, --jobs, --clean and --check", subcommand.ErrOption)
	}
	if c.Yes && !c.Clean {
		return fmt.Errorf("%w: --yes: want --clean as well", subcommand.ErrOption)
	}
	return nil
}

// explainJob prints the report about the PyTorch job of a process. The error wraps [errFaults]
// if the job has a fault, and [subcommand.ErrOption] if the process cannot be examined.
func (c *doctorCommand) explainJob(ctx context.Context, pid int) error {
	r, err := diagnose.Examine(ctx, diagnose.Options{Span: c.Span}, pid)
	if errors.Is(err, diagnose.ErrProcess) {
		return fmt.Errorf("%w: --pid: %w", subcommand.ErrOption, err)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		err = json.NewEncoder(os.Stdout).Encode(r)
	} else {
		err = r.Print(os.Stdout)
	}
	if err == nil && !r.Healthy() {
		err = fmt.Errorf("%w: %s in job of process %d", errFaults, words.Count(len(r.Findings), "finding"), pid)
	}
	return err
}

// explainJobs prints the reports about all PyTorch jobs. The error wraps [errFaults] if one of
// them has a fault.
func (c *doctorCommand) explainJobs(ctx context.Context) error {
	jobs, err := diagnose.ExamineAll(ctx, diagnose.Options{Span: c.Span})
	if err != nil {
		return err
	}
	faults := 0
	for i, r := range jobs {
		faults += len(r.Findings)
		if c.JSON {
			continue
		}
		if i > 0 {
			fmt.Println()
		}
		if err := r.Print(os.Stdout); err != nil {
			return err
		}
	}
	if c.JSON {
		err = json.NewEncoder(os.Stdout).Encode(jobs)
	} else if len(jobs) == 0 {
		_, err = fmt.Println("no PyTorch jobs are running")
	}
	if err == nil && faults > 0 {
		err = fmt.Errorf("%w: %s", errFaults, words.Count(faults, "finding"))
	}
	return err
}

// gpuReport returns the GPU report as JSON, or an object with the reason why there is none.
func gpuReport(ctx context.Context) any {
	said, err := examineGPUs(ctx, "--json")
	if err != nil {
		return map[string]string{"missing": err.Error()}
	}
	return json.RawMessage(said)
}

// examineGPUs runs the doctor of the GPU helper and returns its output. It returns an error if the
// helper is not installed or not built for this platform.
func examineGPUs(ctx context.Context, flags ...string) ([]byte, error) {
	program, err := beside.Find(accel)
	if err != nil {
		return nil, err
	}
	return exec.CommandContext(ctx, program, append([]string{"doctor"}, flags...)...).Output()
}
