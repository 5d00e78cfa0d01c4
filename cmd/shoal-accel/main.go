// Command shoal-accel runs the GPU subcommands of shoal: bench, hogwild and doctor.
//
//	shoal-accel bench cuda       measure tensors on a GPU against the driver and PyTorch
//	shoal-accel hogwild          train a network with several processes on a GPU
//	shoal-accel doctor [--json]  check the driver and each device
//
// It prints the same reports as the shoal subcommands of these names. Users should run shoal, which
// executes shoal-accel if it is installed beside shoal or on the PATH. The programs are separate
// because this one loads the GPU driver's library and is therefore dynamically linked, and shoal
// must stay static.
package main

import (
	"context"
	"encoding/json"
	"os"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/cmd/internal/bench"
	cudabench "github.com/shoal-mp/shoal/cmd/internal/bench/cuda"
	"github.com/shoal-mp/shoal/cmd/internal/hogwild"
	"github.com/shoal-mp/shoal/cmd/internal/subcommand"
	"github.com/shoal-mp/shoal/cuda"
	_ "github.com/shoal-mp/shoal/internal/cuda/sim" // simulated GPU for machines without one
)

// commands must have the names and flags of the corresponding commands of shoal, because shoal
// passes its arguments on unchanged.
var commands = []subcommand.Command{
	{Name: "bench", Help: "Benchmark tensors on a GPU against the driver and against PyTorch.",
		Runner: new(benchCommand)},
	{Name: "hogwild", Help: "Train one network in several processes at once, on a GPU.", Runner: new(hogwildCommand)},
	{Name: "doctor", Help: "Examine the driver and the devices, and try every sharing mechanism.",
		Runner: new(doctorCommand)},
}

func main() {
	shoal.Main(func(ctx context.Context) error {
		return subcommand.Run(ctx, "shoal-accel", "The GPU commands of shoal.", commands)
	})
}

type hogwildCommand struct{ hogwild.Command }

func (c *hogwildCommand) Run(ctx context.Context) error { return hogwild.Run(ctx, c.Options()) }

type doctorCommand struct {
	JSON bool `long:"json" description:"Print one JSON object."`
}

func (c *doctorCommand) Run(ctx context.Context) error {
	r := examineDevices(ctx)
	if c.JSON {
		return json.NewEncoder(os.Stdout).Encode(r)
	}
	return r.Print(os.Stdout)
}

type benchCommand struct {
	Suites struct {
		Names []string `positional-arg-name:"suite" description:"cuda (default) or cuda_ops"`
	} `positional-args:"yes"`
	JSON    bool   `long:"json" description:"Print one JSON object per line."`
	Against string `long:"against" value-name:"torch" description:"Also measure PyTorch with the same work, in alternation."`
	Python  string `long:"python" default:"python3" value-name:"PROGRAM" description:"The Python interpreter with PyTorch."`
	Quick   bool   `long:"quick" description:"Run every row once, briefly: checks that everything runs; the values are meaningless."`
}

func (c *benchCommand) Run(ctx context.Context) error {
	if err := cuda.Available(); err != nil {
		return err
	}
	if len(c.Suites.Names) == 0 {
		c.Suites.Names = []string{cudabench.Suite.Name}
	}
	return bench.Run(ctx, bench.Options{
		Suites: c.Suites.Names, More: []bench.Suite{cudabench.Suite, cudabench.Ops}, Quick: c.Quick,
		Against: c.Against, Python: c.Python,
		Out: os.Stdout, JSON: c.JSON, Log: os.Stderr,
	})
}
