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

// Note [Starting Python] A process of the start method spawn runs "python -c 'from
// multiprocessing.spawn import spawn_main; spawn_main(…)'" and inherits the read end of a pipe. The
// parent writes two pickles to the pipe: the preparation data of the interpreter and the process
// object, which refers to its target by name. The parent keeps the pipe open as long as it lives,
// so that the child can detect its end. Go can therefore be the parent without any code on Python's
// side. See spawn_main in
// https://github.com/python/cpython/blob/v3.13.0/Lib/multiprocessing/spawn.py and
// https://github.com/python/cpython/blob/v3.13.0/Lib/multiprocessing/popen_spawn_posix.py.

// Python configures the interpreter that runs Python functions. The zero value runs the python3 on
// the PATH in the directory and with the environment of this process.
type Python struct {
	Path   string    // the interpreter; "" means python3
	Flags  []string  // arguments of the interpreter, before all others
	Dir    string    // its working directory, the first on sys.path; "" means this process's
	Env    []string  // as in os/exec; nil means this process's
	Stdout io.Writer // nil means os.Stdout
	Stderr io.Writer // nil means os.Stderr; ProcessError also keeps the last lines
	// Linger is the longest time that a process waits after its function has returned, until this
	// process has taken over the memory of messages that are not received yet; 0 means one minute.
	// The handover takes milliseconds while this process runs. After Linger the child exits with an
	// error and reports on stderr which tensors are lost.
	Linger time.Duration
	// Options are the options of [Process.Conn]. If AuthKey is empty, the connection uses the key
	// that this process passes to every process it starts.
	Options Options
}

// Spawn starts a Python function in a new process of the python3 on the PATH. The target must be
// "module:function" or "script.py:function". Python calls the function with a Connection, the other
// end of [Process.Conn], followed by args. Spawn kills the process when ctx is done. The caller
// must call [Process.Close]. See [Python.Spawn] for the values that args may be.
func Spawn(ctx context.Context, target string, args ...any) (*Process, error) {
	return Python{}.Spawn(ctx, target, args...)
}

// Spawn starts a Python function in a new process, as multiprocessing.Process does under the start
// method spawn. The target must be "module:function" or "script.py:function". Python calls the
// function with a Connection, the other end of [Process.Conn], followed by args. The args may be
// any values that [Conn.Send] accepts, and also queues, semaphores, conditions and events. Spawn
// kills the process when ctx is done. The caller must call [Process.Close].
func (py Python) Spawn(ctx context.Context, target string, args ...any) (_ *Process, err error) {
	module, function, ok := strings.Cut(target, ":")
	if !ok || module == "" || function == "" {
		return nil, fmt.Errorf("spawn %q: invalid target, want module:function or script.py:function", target)
	}
	if len(py.Options.AuthKey) == 0 {
		py.Options.AuthKey = processKey()
	}
	p := &Process{target: target, name: fmt.Sprintf("go-%d", spawned.Add(1)), ending: make(chan struct{}),
		inherited: make(chan struct{}), ended: make(chan struct{})}
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
	if err := py.writePickles(p, module, function, args); err != nil {
		return nil, fmt.Errorf("spawn %s: %w", target, err)
	}
	return p, nil
}

var spawned atomic.Int64

// These are the descriptors that the new process inherits after stdin, stdout and stderr.
const (
	startFD = 3 + iota
	connFD
	estateFD
	aheadFD
)

// start starts the interpreter, and sets the fields of p. It returns the write end of the pipe
// that carries the pickles to spawn_main. The caller must keep it open while the process lives,
// because closing it tells the process that this one has ended. On an error, the caller must
// close p.
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
		ahead.readRemaining()
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
	p.cmd.Stdout, p.cmd.Stderr = writerOr(py.Stdout, os.Stdout),
		io.MultiWriter(&p.stderr, writerOr(py.Stderr, os.Stderr))
	p.cmd.ExtraFiles = []*os.File{read, theirs, leaves, sends}
	p.cmd.SysProcAttr = sys.GoesOnAsOrphan()
	p.cmd.WaitDelay = time.Second // for grandchildren that keep its stderr open
	if err := p.cmd.Start(); err != nil {
		write.Close()
		heir.Close()
		ahead.readRemaining()
		p.dir.release()
		p.cmd = nil
		return nil, err
	}
	p.ahead = ahead
	p.Conn.peer, p.Conn.process = newPeer(os.Getuid(), p.cmd.Process.Pid), p
	p.dir.markProcess(p.PID())
	p.dir.retain() // until inherit has taken over the descriptors
	go p.inheritHandover(heir)
	go p.awaitEnd()
	return write, nil
}

func writerOr(w io.Writer, standard *os.File) io.Writer {
	if w == nil {
		return standard
	}
	return w
}

// writePickles writes the two pickles of Note [Starting Python] to the start pipe. It writes in
// a goroutine, and returns before Python has read them, because the pickles may exceed the
// capacity of the pipe and Python reads them only when its interpreter is ready. The error is
// one of the encoding, for example [ErrUnsupported] for an argument.
func (py Python) writePickles(p *Process, module, function string, args []any) error {
	preparation := python.NewDict("name", p.name, "authkey", py.Options.AuthKey, "start_method", "spawn", "_shoal",
		python.Tuple{py.leaveObject(), p.ahead.aheadObject(aheadFD, connFD)})
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
		"_target", python.Global{Module: module, Name: function}, "_args",
		append(python.Tuple{inheritedConnection(connFD)}, args...),
		"_kwargs", new(python.Dict), "_name", p.name)
	out := p.Conn.exporter()
	first, err := out.marshal(preparation)
	if err != nil {
		return err
	}
	low, err := out.Lower(state)
	if err != nil {
		out.withdrawMessage()
		return err
	}
	process := newInstance(named("multiprocessing.context.SpawnProcess"), low)
	second, err := pickle.Marshal(process, 4)
	if err != nil {
		out.withdrawMessage()
		return err
	}
	out.closeTransferred()
	go p.start.Write(append(first, second...)) // fails if the process ends before it has read all
	return nil
}

// leaveObject returns an object that runs leave.py when Python unpickles it. It travels in the
// first pickle, so the code does not appear among the arguments of the interpreter.
func (py Python) leaveObject() *pickle.Object {
	limit := py.Linger
	if limit == 0 {
		limit = linger
	}
	return runPython(leaveCode, "torch/leave.py",
		python.NewDict("fd", estateFD, "conn", connFD, "limit", limit.Seconds()))
}

// runPython returns an object that executes code in the process that unpickles it, with the
// given names defined. file is the name of the code in tracebacks.
func runPython(code, file string, names *python.Dict) *pickle.Object {
	compiled := &pickle.Object{Class: named("builtins.compile"), Args: python.Tuple{code, file, "exec"}}
	return &pickle.Object{Class: named("builtins.exec"), Args: python.Tuple{compiled, names}}
}

// scriptPath returns the absolute path of a script. A relative path is relative to [Python.Dir].
func (py Python) scriptPath(script string) (string, error) {
	if filepath.IsAbs(script) || py.Dir == "" {
		return filepath.Abs(script)
	}
	return filepath.Abs(filepath.Join(py.Dir, script))
}

// inheritedConnection returns the encoding of a Connection on the descriptor with the number fd,
// which the new process inherits.
func inheritedConnection(fd int) *pickle.Object {
	return encodeConnectionOn(newInstance(inheritedFD, python.NewDict("fd", fd)), true, true)
}

// A Process is a Python process started by [Spawn]. Its methods may be called from several
// goroutines.
type Process struct {
	// Conn is the other end of the Connection that the function received as its first argument.
	Conn *Conn

	target    string
	name      string
	cmd       *exec.Cmd
	start     *os.File // closing it tells the process that this one has ended
	stderr    tail
	dir       *tempDir // directory of its temporary files
	ahead     *ahead   // descriptors that it sent before their messages
	listen    sync.Once
	ending    chan struct{} // closed when the function has ended
	inherited chan struct{} // closed when the handover is over
	ended     chan struct{} // closed when the process has ended; see awaitEnd
	err       error         // set before ended is closed
}

// PID returns the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the process has ended and its messages that are not
// received yet have been taken over. The handover delays that by a second at most.
func (p *Process) Done() <-chan struct{} { return p.ended }

// Wait blocks until the process has ended, and returns nil or a *[ProcessError]. If ctx is done
// first, it returns [context.Cause]. Wait closes the sending direction of [Process.Conn], so that a
// function which receives until EOF can return; the caller must not send after it. While it waits
// it buffers the messages of the function for [Conn.Recv], up to [Options.MaxMessage] bytes. A
// program that continues to send should use [Process.Done] instead.
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
			p.Conn.closeSending()
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

// failureSoon returns the failure of the process, a *[ProcessError], if it has failed or is
// about to fail. It returns nil if the process is alive or has succeeded. It waits up to moment
// for the function to end, then until the process has ended, and in both cases no longer than
// until ctx is done.
func (p *Process) failureSoon(ctx context.Context) error {
	select {
	case <-p.ended:
		return p.err
	case <-p.ending:
	default:
		if !sys.Exiting(p.PID()) && !closedWithin(ctx, p.ending, moment) {
			return nil
		}
	}
	if closedWithin(ctx, p.ended, forever) {
		return p.err
	}
	return nil
}

// moment is how long failureSoon waits for the end of the function after a connection has ended.
// The process announces the end of its function on another socket, so the two may arrive in either
// order.
const moment = 100 * time.Millisecond

// forever is a limit that never expires before a context.
const forever = time.Duration(math.MaxInt64)

// closedWithin reports whether c is closed before the limit expires and before ctx is done.
func closedWithin(ctx context.Context, c <-chan struct{}, limit time.Duration) bool {
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

// Signal sends a signal to the process. It returns [os.ErrProcessDone] if the process has ended.
func (p *Process) Signal(sig os.Signal) error { return p.cmd.Process.Signal(sig) }

// Close kills the process if it is alive, waits for its end, and closes [Process.Conn]. Messages
// that were not received are dropped. A process that was killed in this way is no error. Close
// is idempotent.
func (p *Process) Close() error {
	if p.cmd != nil {
		p.cmd.Process.Kill()
		<-p.ended
		if !p.Conn.passed.Load() { // no other process can receive its messages
			p.ahead.closeRemaining()
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

// awaitEnd waits for the end of the process, sets p.err, and closes p.ended. It also waits for
// the end of the handover: a program may exit when Wait returns, and must not leave the
// process's directory behind. A process forked by this one may keep the socket of the handover
// open, so awaitEnd does not wait for longer than a second.
func (p *Process) awaitEnd() {
	defer close(p.ended)
	err := p.cmd.Wait()
	p.ahead.readRemaining()
	select {
	case <-p.inherited:
	case <-time.After(p.cmd.WaitDelay):
	}
	p.dir.release()
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
