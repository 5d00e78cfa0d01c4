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

// A Command is a subcommand of a program. Its flags are the fields of the struct that Runner points
// to.
type Command struct {
	Name, Help string
	Runner
	// OwnArguments means that the command parses its arguments itself.
	OwnArguments bool
}

// A Runner runs a subcommand.
type Runner interface {
	Run(ctx context.Context) error
}

// ErrOption should be wrapped by errors about invalid flag values. The program then exits with
// status 2.
var ErrOption = errors.New("invalid option")

// Run parses the program's arguments and runs the selected command. does describes the program
// in a sentence of its help. For a missing or unknown command, an unknown flag, and a command's
// error that wraps [ErrOption], [hogwild.ErrOption] or [bench.ErrSuite], it prints the error on
// standard error and exits with status 2. For [hogwild.ErrUnread] it exits silently with the
// shell's status for SIGPIPE. It returns all other errors, and any error of a command with
// OwnArguments; the caller must print them. For --help it prints the help and returns nil. If a
// command returns nil although ctx is done, Run returns the cause, because the command was cut
// short.
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
			Help: "Print the bash, zsh or fish completion script of " + program + "."},
		Command{Name: "man", Help: "Print the manual page; view it with man -l -.", Runner: &manual{parser}})
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
		return writeHelp(os.Stdout, parser, textWidth(os.Stdout))
	}
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("unexpected argument %q", rest[0])
	}
	if err != nil {
		help := program + " --help"
		if parser.Active != nil {
			help = program + " " + parser.Active.Name + " --help"
		}
		Misused(program, fmt.Errorf("%w: see %s", err, help))
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
		os.Exit(128 + int(syscall.SIGPIPE)) // the status of a shell for SIGPIPE, silently
	}
	return words.CleanError(err)
}

// Misused prints err as a usage error on standard error and exits with status 2. It does not
// return.
func Misused(program string, err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", program, words.CleanError(err))
	os.Exit(2)
}
