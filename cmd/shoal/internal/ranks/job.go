package ranks

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/shoal-mp/shoal/cmd/internal/words"
	"github.com/shoal-mp/shoal/internal/launch"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A Job is a program that is run as ranks. Its fields must not be changed while it runs.
type Job struct {
	Program []string
	Hosts   []Host
	NATS    string        // URL of a NATS server, passed in SHOAL_NATS
	Grace   time.Duration // time from SIGTERM to SIGKILL
	Prefix  bool
	SSH     string // program to reach other hosts
	Out     io.Writer
	Err     io.Writer
}

// A Failure is the error of the first rank that failed.
type Failure struct {
	Rank   int // -1 for the launcher
	Host   string
	Status int // as in a shell: 128 plus the signal's number if a signal ended it
	Err    error
}

// Error returns the message with the rank and its host.
func (f *Failure) Error() string {
	what := fmt.Sprintf("rank %d", f.Rank)
	if f.Rank < 0 {
		what = "the launcher"
	}
	if f.Host != "" {
		what += " on " + f.Host
	}
	return fmt.Sprintf("%s: %v", what, f.Err)
}

// Unwrap returns f.Err.
func (f *Failure) Unwrap() error { return f.Err }

// Run runs the job and restarts it up to restarts times after a failure. A restart starts all
// ranks with a new job ID, because the surviving ranks have lost a peer. Run returns nil if all
// ranks succeed, a [*Failure] for the first rank that failed, or the cause of ctx.
func (j *Job) Run(ctx context.Context, restarts int) error {
	for attempt := 0; ; attempt++ {
		err := j.runAttempt(ctx, attempt)
		if err == nil || attempt >= restarts || ctx.Err() != nil {
			return err
		}
		words.Fprintf(j.Err, "shoal run: %v; restart %d of %d\n", err, attempt+1, restarts)
	}
}

// runAttempt runs all ranks until the first one fails or all have exited; see [Job.supervise].
// attempt counts from 0 and is passed to the ranks.
func (j *Job) runAttempt(ctx context.Context, attempt int) error {
	id, size := rand.Text(), Total(j.Hosts)
	var all []rank
	for _, h := range j.Hosts {
		for local := range h.Ranks {
			l := launch.Launch{Rank: len(all), Size: size, LocalRank: local, LocalSize: h.Ranks, Job: id}
			all = append(all, rank{l.Rank, h.Name, j.rankCommand(h, j.rankEnv(l, attempt))})
		}
	}
	return j.supervise(ctx, all)
}

// A rank is a process that shoal run starts directly.
type rank struct {
	number  int
	host    string
	command *exec.Cmd
}

// rankEnv returns the environment variables of a rank as NAME=VALUE, in addition to the
// variables of this process. They include the variables of torchrun, so that PyTorch programs
// run as well.
func (j *Job) rankEnv(l launch.Launch, attempt int) []string {
	env := append(l.Env(), fmt.Sprint("TORCHELASTIC_RESTART_COUNT=", attempt))
	for name, value := range map[string]string{"MASTER_ADDR": j.masterAddr(), "MASTER_PORT": "29500"} {
		if os.Getenv(name) == "" {
			env = append(env, name+"="+value)
		}
	}
	if j.NATS != "" {
		env = append(env, "SHOAL_NATS="+j.NATS)
	}
	return env
}

func (j *Job) masterAddr() string {
	if name := j.Hosts[0].Name; name != "" {
		return name
	}
	return "127.0.0.1"
}

// remote is a shell script that runs a program in a directory with the given environment and kills
// it when standard input reaches EOF. Thus the rank ends when ssh does. Its arguments must be the
// directory, the variables and the command.
const remote = `cd "$1" || exit 127; shift; exec 3<&0; env "$@" </dev/null 3<&- & p=$!; ` +
	`{ cat <&3 >/dev/null; kill "$p"; } 2>/dev/null & c=$!; exec 3<&-; wait "$p"; s=$?; kill "$c" 2>/dev/null; exit "$s"`

// rankCommand returns the command that starts a rank on a host, through ssh unless that is this
// machine. env is the result of [Job.rankEnv].
func (j *Job) rankCommand(h Host, env []string) *exec.Cmd {
	if h.Name == "" {
		c := exec.Command(j.Program[0], j.Program[1:]...)
		c.Env = append(os.Environ(), env...)
		return c
	}
	dir, _ := os.Getwd()
	words := append(append([]string{"sh", "-c", remote, "shoal", dir}, env...), j.Program...)
	for i, w := range words {
		words[i] = quoteWord(w)
	}
	c := exec.Command(j.SSH, "-o", "BatchMode=yes", h.Name, strings.Join(words, " "))
	return c
}

// quoteWord quotes a word for a POSIX shell.
func quoteWord(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// supervise starts the processes and returns after all have exited. It terminates all of them when
// one fails or ctx is done, and returns the first [Failure] or the cause of ctx.
func (j *Job) supervise(ctx context.Context, all []rank) error {
	end := make(chan struct{})
	ended := make(chan *Failure, len(all))
	var log output
	for _, r := range all {
		go func() { ended <- j.run(r, &log, end) }()
	}
	var first error
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			close(end)
		}
	}
	done := ctx.Done()
	for left := len(all); left > 0; {
		select {
		case f := <-ended:
			left--
			if f != nil && first == nil {
				first = f
				stop()
			}
		case <-done:
			done = nil
			if first == nil {
				first = context.Cause(ctx)
			}
			stop()
		}
	}
	return first
}

// run runs the process of one rank until it exits, and returns nil if it succeeded. When end is
// closed, it sends SIGTERM, and SIGKILL after the grace period.
func (j *Job) run(r rank, log *output, end <-chan struct{}) *Failure {
	runtime.LockOSThread() // required by EndsWithThread; the thread ends with the goroutine
	c := r.command
	c.SysProcAttr = sys.EndsWithThread(true)
	out, errs := &lines{to: j.Out, all: log}, &lines{to: j.Err, all: log}
	if j.Prefix && r.number >= 0 {
		out.prefix = fmt.Sprintf("[%d] ", r.number)
		errs.prefix = out.prefix
	}
	c.Stdout, c.Stderr, c.WaitDelay = out, errs, j.Grace
	fail := func(err error) *Failure { return &Failure{r.number, r.host, exitStatus(err), err} }
	var held io.Closer
	if r.host != "" {
		in, err := c.StdinPipe() // EOF ends the rank, see remote
		if err != nil {
			return fail(err)
		}
		held = in
	}
	if err := c.Start(); err != nil {
		return fail(err)
	}
	over, killed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(killed)
		select {
		case <-over:
			return
		case <-end:
		}
		if held != nil {
			held.Close()
		}
		sys.SignalGroup(c.Process, syscall.SIGTERM)
		select {
		case <-over:
		case <-time.After(j.Grace):
			sys.SignalGroup(c.Process, syscall.SIGKILL)
		}
	}()
	err := c.Wait()
	close(over)
	<-killed
	out.forwardRest()
	errs.forwardRest()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return fail(err)
	}
	return nil
}

// exitStatus returns the exit status for an error of [exec.Cmd], as a shell does: 128 plus the
// number of the signal that killed the process, or 127 if it could not be started. err must not
// be nil.
func exitStatus(err error) int {
	var e *exec.ExitError
	if !errors.As(err, &e) {
		return 127 // not started
	}
	if w, ok := e.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return e.ExitCode()
}
