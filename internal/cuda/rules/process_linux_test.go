package rules_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
)

// The environment of a process that answers, or helps.
const (
	roleKey    = "RULES_ROLE"
	devicesKey = "RULES_DEVICES"
	failure    = "failed: " // before an answer that is none
)

// A process is this one: a driver, a context of the first device, and its starter.
type process struct {
	cudriver.Driver
	paths  string // of simulated devices
	line   line
	ctx    cudriver.Context
	stream cudriver.Stream
}

// helpers are the other processes of questions.
var helpers = map[string]func(p *process){}

// play is what a process does instead of tests. What goes wrong is said and ends it.
func play(role string) {
	conn, err := sys.SocketConn(os.NewFile(3, "line"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	p := &process{paths: os.Getenv(devicesKey), line: line{conn}}
	defer func() {
		if r := recover(); r != nil {
			err, ok := r.(error)
			if !ok || p.line.say(failure+err.Error()) != nil {
				panic(r)
			}
		}
	}()
	p.Driver, err = load(p.paths)
	testutil.MustNoError(err)
	if n, err := strconv.Atoi(role); err == nil {
		testutil.MustNoError(p.line.say(rules[n].ask(p)))
		return
	}
	helpers[role](p)
}

// said returns what a driver answers.
func said(err error) string {
	if failed, ok := errors.AsType[*cudriver.Error](err); ok {
		return failed.Result.Error()
	}
	if err != nil {
		return err.Error()
	}
	return cudriver.Success.Error()
}

// onDevice chooses between what is right for a device and for a simulated one.
func onDevice[T any](p *process, device, simulated T) T {
	if p.paths == "" {
		return device
	}
	return simulated
}

// enter makes the context of the first device current, and a stream.
func (p *process) enter() *process {
	testutil.MustNoError(p.Init())
	p.ctx = testutil.Must(p.PrimaryCtxRetain(0))
	testutil.MustNoError(p.CtxSetCurrent(p.ctx))
	p.stream = testutil.Must(p.StreamCreate(cudriver.StreamNonBlocking))
	return p
}

// A line is the connection of two processes.
type line struct{ *sys.Conn }

// frame is what every message takes, so that none is taken for two: what eight devices say of
// themselves has room.
const frame = 8 << 10

func (l line) say(text string, files ...*os.File) error {
	b := make([]byte, frame)
	copy(b, text)
	return sys.SendFiles(l.Conn, b, files...)
}

// hear returns what the other one says, and a file if one came.
func (l line) hear() (text string, f *os.File, err error) {
	b := make([]byte, frame)
	n, files, err := sys.RecvFiles(l.Conn, b, 1)
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err == nil {
		_, err = io.ReadFull(l.Conn, b[n:])
	}
	if len(files) > 0 {
		f = files[0]
	}
	return string(bytes.TrimRight(b, "\x00")), f, err
}

// other is a process that this one has started.
type other struct {
	line line
	cmd  *exec.Cmd
	err  bytes.Buffer // the last of what it wrote there
}

func startProcess(role, paths, env string, how *syscall.SysProcAttr) (*other, error) {
	ours, theirs, err := sys.Pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	o := &other{line: line{ours}, cmd: exec.Command("/proc/self/exe")}
	o.cmd.Env = append(os.Environ(), roleKey+"="+role, devicesKey+"="+paths)
	if env != "" {
		o.cmd.Env = append(o.cmd.Env, env)
	}
	o.cmd.ExtraFiles, o.cmd.SysProcAttr = []*os.File{theirs}, how
	o.cmd.Stderr = &o.err
	err = errors.Join(ours.SetDeadline(time.Now().Add(patience)), o.cmd.Start())
	if err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	return o, nil
}

// start starts a helper, which ends at the latest when this process does, also if it hangs in the
// driver.
func (p *process) start(helper string) *other {
	return testutil.Must(startProcess(helper, p.paths, "", &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}))
}

// hear returns what the helper says.
func (o *other) hear() (string, *os.File) {
	text, f, err := o.line.hear()
	if err != nil {
		panic(fmt.Errorf("a helper says nothing: %w: %s", err, o.awaitExit()))
	}
	if why, failed := strings.CutPrefix(text, failure); failed {
		panic(fmt.Errorf("a helper: %s", why))
	}
	return text, f
}

func (o *other) say(text string, files ...*os.File) { testutil.MustNoError(o.line.say(text, files...)) }

// kill ends it and waits until it has.
func (o *other) kill() {
	o.cmd.Process.Signal(syscall.SIGKILL)
	o.cmd.Wait()
	o.line.Close()
}

// awaitExit waits for the process to end, and returns how it ended. It kills the process if it does
// not end.
func (o *other) awaitExit() string {
	stop := time.AfterFunc(patience, func() { o.cmd.Process.Kill() })
	defer stop.Stop()
	err := o.cmd.Wait()
	words := strings.TrimSpace(o.err.String())
	if n := 300; len(words) > n {
		words = words[:n] + "…"
	}
	return fmt.Sprintf("%v %q", err, words)
}
