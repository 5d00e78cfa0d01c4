package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/shoal-mp/shoal/cmd/internal/subcommand"
	"github.com/shoal-mp/shoal/cmd/internal/words"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/ranks"
)

// runCommand implements shoal run.
type runCommand struct {
	N           *int          `short:"n" long:"ranks" value-name:"N" description:"Number of ranks; by default the total of --hosts, or 1."`
	Hosts       string        `long:"hosts" value-name:"a:2,b:2" description:"Hosts and their numbers of ranks, started through ssh or by the launcher of --mpi."`
	MPI         bool          `long:"mpi" description:"Start the ranks with mpirun; they communicate through its MPI library."`
	Mpirun      string        `long:"mpirun" default:"mpirun" value-name:"PROGRAM" description:"The launcher for --mpi."`
	NATS        string        `long:"nats" value-name:"URL" description:"A NATS server through which the ranks communicate; passed on as SHOAL_NATS."`
	MaxRestarts int           `long:"max-restarts" value-name:"N" description:"How many times to restart all ranks after one fails."`
	Grace       time.Duration `long:"grace" default:"5s" value-name:"DURATION" description:"Time from SIGTERM to SIGKILL for the other ranks after one fails."`
	NoPrefix    bool          `long:"no-prefix" description:"Do not prefix output lines with the rank."`
	SSH         string        `long:"ssh" default:"ssh" value-name:"PROGRAM" description:"The program that starts ranks on other hosts."`
	Args        struct {
		Program []string `positional-arg-name:"program" description:"The program and its arguments, after --."`
	} `positional-args:"yes"`
}

// Run runs a program as the ranks of a job. For invalid options the process exits with status 2.
// If a rank fails, the process exits with the status of the first one that failed.
func (c *runCommand) Run(ctx context.Context) error {
	j, err := c.job()
	if err != nil {
		subcommand.Misused("shoal", err)
	}
	if c.MPI {
		err = j.RunMPI(ctx, c.Mpirun, c.MaxRestarts)
	} else {
		err = j.Run(ctx, c.MaxRestarts)
	}
	if errors.Is(err, ranks.ErrOption) {
		subcommand.Misused("shoal", err)
	}
	if f, ok := errors.AsType[*ranks.Failure](err); ok && ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "shoal run: %v\n", words.CleanError(f))
		os.Exit(f.Status)
	}
	return err
}

func (c *runCommand) job() (*ranks.Job, error) {
	wrong := func(format string, args ...any) (*ranks.Job, error) {
		return nil, fmt.Errorf("%w: %s", ranks.ErrOption, fmt.Sprintf(format, args...))
	}
	if len(c.Args.Program) == 0 {
		return wrong("missing program, want for example: shoal run -n 4 -- ./program")
	}
	if c.MaxRestarts < 0 || c.Grace <= 0 {
		return wrong("--max-restarts %d, --grace %v: want at least 0 restarts and a positive grace",
			c.MaxRestarts, c.Grace)
	}
	hosts := []ranks.Host{{Ranks: 1}}
	if c.N != nil {
		if hosts[0].Ranks = *c.N; *c.N < 1 {
			return wrong("-n %d: want at least 1", *c.N)
		}
	}
	if c.Hosts != "" {
		var err error
		if hosts, err = ranks.ParseHosts(c.Hosts); err != nil {
			return nil, err
		}
		if n := ranks.Total(hosts); c.N != nil && *c.N != n {
			return wrong("-n %d does not match --hosts, which has %d ranks", *c.N, n)
		}
	}
	if len(hosts) > 1 && !c.MPI && c.NATS == "" {
		return wrong("ranks on %d hosts have no way to communicate: add --mpi, for programs that import dist/mpi, "+
			"or --nats URL",
			len(hosts))
	}
	return &ranks.Job{Program: c.Args.Program, Hosts: hosts, NATS: c.NATS, Grace: c.Grace, Prefix: !c.NoPrefix,
		SSH: c.SSH, Out: os.Stdout, Err: os.Stderr}, nil
}
