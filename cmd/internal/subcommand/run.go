package subcommand

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/jessevdk/go-flags"

	"github.com/shoal-mp/shoal/cmd/internal/bench"
	"github.com/shoal-mp/shoal/cmd/internal/hogwild"
	"github.com/shoal-mp/shoal/cmd/internal/words"
)

// A Command is one of the things that a program does. Its flags are the fields of the struct that
// Runner points to.
type Command struct {
	Name, Help string
	Runner
	// OwnArguments says that the command reads its arguments by itself.
	OwnArguments bool
}

// A Runner does it.
type Runner interface {
	Run(ctx context.Context) error
}

// ErrOption is wrapped where the value of a flag makes no sense. Then the program ends with exit
// status 2.
var ErrOption = errors.New("bad option")

// Run parses the arguments of the program and runs the command that they name. An unknown command
// is an error on stderr and exit status 2, as package flag has it. A command that ends well after a
// signal has been cut short: the error is the cause of ctx.
func Run(ctx context.Context, program, does string, commands []Command) error {
	err := run(ctx, program, does, commands)
	if err == nil {
		err = context.Cause(ctx)
	}
	return err
}

func run(ctx context.Context, program, does string, commands []Command) error {
	parser := flags.NewNamedParser(program, flags.HelpFlag|flags.PassDoubleDash)
	parser.ShortDescription = does
	commands = append(commands[:len(commands):len(commands)],
		Command{Name: "completion", Runner: &completion{program: program},
			Help: "Print what bash, zsh or fish reads to complete the arguments of " + program + "."},
		Command{Name: "man", Help: "Print the manual page, to be read by man -l -.", Runner: &manual{parser}})
	for _, c := range commands {
		if _, err := parser.AddCommand(c.Name, c.Help, c.Help, c.Runner); err != nil {
			return err
		}
	}
	for _, c := range commands {
		if c.OwnArguments && len(os.Args) > 1 && os.Args[1] == c.Name {
			return words.CleanError(c.Run(ctx))
		}
	}
	rest, err := parser.ParseArgs(os.Args[1:])
	if bad, ok := errors.AsType[*flags.Error](err); ok && bad.Type == flags.ErrHelp {
		return help(os.Stdout, parser, columns(os.Stdout))
	}
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("unexpected argument %q", rest[0])
	}
	if err != nil {
		help := program + " --help"
		if parser.Active != nil {
			help = program + " " + parser.Active.Name + " --help"
		}
		Misused(program, fmt.Errorf("%w; %s shows what there is", err, help))
	}
	for _, c := range commands {
		if c.Name == parser.Active.Name {
			err = c.Run(ctx)
		}
	}
	if errors.Is(err, ErrOption) || errors.Is(err, hogwild.ErrOption) || errors.Is(err, bench.ErrSuite) {
		Misused(program, err)
	}
	if errors.Is(err, hogwild.ErrUnread) {
		os.Exit(128 + int(syscall.SIGPIPE)) // as a shell has it, and without a word, as the kernel does it
	}
	return words.CleanError(err)
}

// Misused says what is wrong with the command line, and ends the program with exit status 2.
func Misused(program string, err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", program, words.CleanError(err))
	os.Exit(2)
}
