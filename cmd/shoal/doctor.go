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
	"github.com/shoal-mp/shoal/cmd/shoal/internal/doctor"
)

// doctorCommand implements shoal doctor.
type doctorCommand struct {
	Span time.Duration `long:"span" default:"1s" value-name:"DURATION" description:"How long to observe the CPUs."`
	JSON bool          `long:"json" description:"Print one JSON object."`

	Check *int `long:"check" value-name:"PID" description:"Audit the shared memory of this process while it runs, and exit with status 1 if it is corrupt."`
}

// Run examines the machine and prints a report on standard output, followed by the report on GPUs.
// With --check it audits the shared memory of one process instead.
func (c *doctorCommand) Run(ctx context.Context) error {
	if c.Span <= 0 {
		return fmt.Errorf("%w: --span %v: want a positive duration", subcommand.ErrOption, c.Span)
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
	if c.JSON {
		report.GPUs = gpuReport(ctx)
		return json.NewEncoder(os.Stdout).Encode(report)
	}
	if err := report.Print(os.Stdout); err != nil {
		return err
	}
	said, err := examineGPUs(ctx)
	if err != nil {
		said = []byte("GPUs were not examined: " + err.Error() + "\n")
	}
	_, err = fmt.Printf("\n%s", said)
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
