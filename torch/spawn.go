package torch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [Starting Python] A process under the start method spawn is "python -c 'from
// multiprocessing.spawn import spawn_main; spawn_main(…)'" with the read end of a pipe. Two pickles
// come on the pipe: one prepares the interpreter, and one is the process object, whose target is a
// name. The pipe stays open as long as the parent lives. So Go can be the parent without any code
// on Python's side.

// A Python says how to start functions of Python. The zero value is usable: it is the python3 of
// the PATH, in this process's directory and environment.
type Python struct {
	Path   string    // the interpreter; "" stands for python3
	Flags  []string  // arguments of the interpreter, before all others
	Dir    string    // its working directory, where Python looks for modules first; "" stands for this process's
	Env    []string  // as in os/exec; nil stands for this process's
	Stdout io.Writer // nil stands for os.Stdout
	Stderr io.Writer // nil stands for os.Stderr; the last lines are in a ProcessError as well
	// Linger is how long a process whose function has ended waits for this process to take over the
	// memory of messages that nobody has received yet; 0 stands for a minute. That takes
	// milliseconds while this process runs. After Linger the other process fails and says on stderr
	// what is lost.
	Linger time.Duration
	// Options are those of Process.Conn. Without an AuthKey the connection has the key of all
	// processes that this one starts. They learn it when they start.
	Options Options
}

// Spawn starts a function of Python in a new process of the python3 on the PATH. The target is
// "module:function" or "script.py:function". Python calls the function with a Connection, whose
// other end is Process.Conn, and with args. The args may be any value that Conn.Send takes, and
// queues, locks, conditions and events. Spawn kills the process when ctx is done. The caller closes
// the Process.
func Spawn(ctx context.Context, target string, args ...any) (*Process, error) {
	return Python{}.Spawn(ctx, target, args...)
}

// Spawn starts a function of Python in a new process, as multiprocessing.Process does under the
// start method spawn. The target is "module:function" or "script.py:function". Python calls the
// function with a Connection, whose other end is Process.Conn, and with args. The args may be any
// value that Conn.Send takes, and queues, locks, conditions and events. Spawn kills the process
// when ctx is done. The caller closes the Process.
func (py Python) Spawn(ctx context.Context, target string, args ...any) (_ *Process, err error) {
	module, function, ok := strings.Cut(target, ":")
	if !ok || module == "" || function == "" {
		return nil, fmt.Errorf("spawn %q: a target is module:function or script.py:function", target)
	}
	if len(py.Options.AuthKey) == 0 {
		py.Options.AuthKey = processKey()
	}
	p := &Process{target: target, name: fmt.Sprintf("go-%d", spawned.Add(1)), ending: make(chan struct{}),
		ended: make(chan struct{})}
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	tell, err := py.start(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("spawn %s: %w", target, err)
	}
	p.start = tell
	if err := py.describe(p, module, function, args); err != nil {
		return nil, fmt.Errorf("spawn %s: %w", target, err)
	}
	return p, nil
}

var spawned atomic.Int64

// These are the descriptors of the new process after the three that every process has.
const (
	startFD = 3 + iota
	connFD
	estateFD
	aheadFD
)

// start starts the interpreter, and returns the pipe on which the interpreter waits for the
// pickles.
func (py Python) start(ctx context.Context, p *Process) (*os.File, error) {
	ours, theirs, err := sys.Pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	p.Conn = newConn(ours, py.Options)
	heir, leaves, err := sys.Pair()
	if err != nil {
		return nil, err
	}
	defer leaves.Close()
	ahead, sends, err := newAhead(py.Options.AuthKey)
	if err != nil {
		heir.Close()
		return nil, err
	}
	defer sends.Close()
	read, write, err := os.Pipe()
	if err != nil {
		heir.Close()
		ahead.end()
		return nil, err
	}
	defer read.Close()
	path := py.Path
	if path == "" {
		path = "python3"
	}
	p.dir = newTempDir(py.Env)
	code := fmt.Sprintf(
		"from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=None, pipe_handle=%d)", startFD)
	argv := append(append([]string{}, py.Flags...), "-c", code, "--multiprocessing-fork")
	p.cmd = exec.CommandContext(ctx, path, argv...)
	p.cmd.Dir, p.cmd.Env = py.Dir, py.Env
	p.cmd.Stdout, p.cmd.Stderr = orStandard(py.Stdout, os.Stdout),
		io.MultiWriter(&p.stderr, orStandard(py.Stderr, os.Stderr))
	p.cmd.ExtraFiles = []*os.File{read, theirs, leaves, sends}
	p.cmd.SysProcAttr = sys.GoesOnAsOrphan()
	p.cmd.WaitDelay = time.Second // for grandchildren that have its stderr
	if err := p.cmd.Start(); err != nil {
		write.Close()
		heir.Close()
		ahead.end()
		p.dir.leave()
		p.cmd = nil
		return nil, err
	}
	p.ahead = ahead
	p.Conn.peer, p.Conn.process = newPeer(os.Getuid(), p.cmd.Process.Pid), p
	p.dir.mark(p.PID())
	p.dir.enter() // this process will take over
	go p.inherit(heir)
	go p.await()
	return write, nil
}

func orStandard(w io.Writer, standard *os.File) io.Writer {
	if w == nil {
		return standard
	}
	return w
}

// describe writes the two pickles. The process reads them when its interpreter is ready. They may
// be longer than a pipe.
func (py Python) describe(p *Process, module, function string, args []any) error {
	preparation := python.NewDict("name", p.name, "authkey", py.Options.AuthKey, "start_method", "spawn", "_shoal",
		python.Tuple{py.arrangement(), p.ahead.arrangement(aheadFD, connFD)})
	if strings.HasSuffix(module, ".py") {
		path, err := py.scriptPath(module)
		if err != nil {
			return err
		}
		preparation.Set("init_main_from_path", path)
		module = "__main__"
	}
	config := python.NewDict("authkey", py.Options.AuthKey, "semprefix", "/mp")
	if p.dir.path != "" {
		config.Set("tempdir", p.dir.path)
	}
	state := python.NewDict(
		"_identity", python.Tuple{1}, "_config", config,
		"_parent_pid", os.Getpid(), "_parent_name", "go", "_popen", nil, "_closed", false,
		"_target", python.Global{Module: module, Name: function}, "_args", append(python.Tuple{inherited(connFD)}, args...),
		"_kwargs", new(python.Dict), "_name", p.name)
	out := p.Conn.exporter()
	first, err := out.marshal(preparation)
	if err != nil {
		return err
	}
	low, err := out.Lower(state)
	if err != nil {
		out.undo()
		return err
	}
	process := withState(named("multiprocessing.context.SpawnProcess"), low)
	second, err := pickle.Marshal(process, 4)
	if err != nil {
		out.undo()
		return err
	}
	out.moveAway()
	go p.start.Write(append(first, second...)) // fails if the process has ended without reading all
	return nil
}

// arrangement runs leave.py. It is part of the first pickle, so the arguments of the interpreter do
// not show it.
func (py Python) arrangement() *pickle.Object {
	limit := py.Linger
	if limit == 0 {
		limit = linger
	}
	return runPython(leaveCode, "torch/leave.py", python.NewDict("fd", estateFD, "conn", connFD, "limit", limit.Seconds()))
}

// runPython is an object that makes its reader run the code, with these names defined.
func runPython(code, file string, names *python.Dict) *pickle.Object {
	compiled := &pickle.Object{Class: named("builtins.compile"), Args: python.Tuple{code, file, "exec"}}
	return &pickle.Object{Class: named("builtins.exec"), Args: python.Tuple{compiled, names}}
}

// scriptPath is the path of a script for Python in any directory.
func (py Python) scriptPath(script string) (string, error) {
	if filepath.IsAbs(script) || py.Dir == "" {
		return filepath.Abs(script)
	}
	return filepath.Abs(filepath.Join(py.Dir, script))
}

// inherited is a connection on a descriptor that the new process has.
func inherited(fd int) *pickle.Object {
	return connectionOn(withState(inheritedFD, python.NewDict("fd", fd)), true, true)
}

// A Process is a Python process that this process has started. Several goroutines may call its
// methods.
type Process struct {
	// Conn is the other end of the connection that the function got as its first argument.
	Conn *Conn

	target string
	name   string
	cmd    *exec.Cmd
	start  *os.File // its closing tells the process that this one has ended
	stderr tail
	dir    *tempDir // directory for its temporary files
	ahead  *ahead   // descriptors that it has sent before messages
	listen sync.Once
	ending chan struct{} // the function has ended
	ended  chan struct{}
	err    error // set before ended is closed
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.ended }

// Wait blocks until the process has ended, and returns nil or a *ProcessError. If ctx is done
// before, it returns the cause of ctx's end. Wait ends the sending through Conn, so that a function
// which receives until the end comes to its end. Meanwhile it keeps the messages of the function
// for Conn.Recv, up to Options.MaxMessage bytes. A program that goes on sending uses Done instead.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.ended:
		return p.err
	case <-ctx.Done():
		return context.Cause(ctx)
	default:
	}
	p.listen.Do(func() {
		go func() {
			p.Conn.endSending()
			p.Conn.readAhead()
		}()
	})
	select {
	case <-p.ended:
		return p.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// failed returns the failure of the process, if it has failed or is about to. It returns nil if the
// process lives, or has ended well.
func (p *Process) failed(ctx context.Context) error {
	select {
	case <-p.ended:
		return p.err
	case <-p.ending:
	default:
		if !sys.Exiting(p.PID()) && !within(ctx, p.ending, moment) {
			return nil
		}
	}
	if within(ctx, p.ended, forever) {
		return p.err
	}
	return nil
}

// moment is how long, after the end of a connection, failed waits for the end of the function. The
// process announces that end before, in another way.
const moment = 100 * time.Millisecond

// forever is as long as a context.
const forever = time.Duration(math.MaxInt64)

// within waits for c to be closed.
func within(ctx context.Context, c <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// Signal sends a signal to the process. The error is os.ErrProcessDone if it has ended.
func (p *Process) Signal(sig os.Signal) error { return p.cmd.Process.Signal(sig) }

// Close kills the process if it has not ended, waits for its end, and closes Conn. Messages that
// nobody has received are gone then. Close is idempotent.
func (p *Process) Close() error {
	if p.cmd != nil {
		p.cmd.Process.Kill()
		<-p.ended
		if !p.Conn.passed.Load() { // no other process will read the messages
			p.ahead.drop()
		}
	}
	if p.start != nil {
		p.start.Close()
	}
	if p.Conn == nil {
		return nil
	}
	return p.Conn.Close()
}

func (p *Process) await() {
	defer close(p.ended)
	err := p.cmd.Wait()
	p.ahead.end()
	p.dir.leave()
	removeUnfinished(p.PID())
	var exit *exec.ExitError
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay) && p.cmd.ProcessState.Success():
	case errors.As(err, &exit) || p.cmd.ProcessState != nil:
		p.err = p.failure(p.cmd.ProcessState, err)
	default:
		p.err = fmt.Errorf("wait for %s: %w", p.target, err)
	}
}
