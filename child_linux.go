package shoal

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/shoal-mp/shoal/internal/leak"
	"github.com/shoal-mp/shoal/internal/sys"
)

// image is the running program itself, so that a rebuilt or deleted file does not matter. The new
// process resolves the link while its image is still its parent's.
const image = "/proc/self/exe"

// startChild starts the program again with the parameters b, and returns without waiting for the
// process. The process first waits for its job. If it cannot be started, startChild releases all
// files and returns the error, with advice if the error is a known limit.
func startChild(b launch) (_ *child, err error) {
	c := &child{warm: b.warm, told: make(chan struct{}), ended: make(chan struct{})}
	defer func() {
		closeAll(c.theirs)
		if err != nil {
			c.close()
			err = sys.Advised(err)
		}
	}()
	files, err := c.openFiles(b)
	if err != nil {
		return nil, err
	}
	m := workerEnv{lifelines: len(files) - fdLifelines, threads: b.threads, orphanGrace: b.orphanGrace, warm: b.warm}
	c.process, err = os.StartProcess(cmp.Or(b.executable, image), append([]string{b.title}, os.Args[1:]...),
		&os.ProcAttr{
			Files: files,
			Dir:   b.workDir,
			Env:   mergeEnv(os.Environ(), budgetEnv(b.threads), b.env, []string{m.String()}),
			Sys:   sys.GoesOnAsOrphan(),
		})
	if err != nil {
		return nil, fmt.Errorf("start process: %w", cmp.Or(b.checkWorkDir(), err))
	}
	leak.Started(c.process.Pid)
	if c.death.pidfd, err = sys.OpenPidfd(c.process.Pid); err != nil {
		c.process.Kill()
		c.process.Wait()
		return nil, err
	}
	return c, nil
}

// checkWorkDir returns an error if the working directory b.workDir is set but not accessible,
// and nil otherwise. The error of os.StartProcess would name the program instead.
func (b launch) checkWorkDir() error {
	if b.workDir == "" {
		return nil
	}
	if _, err := os.Stat(b.workDir + "/."); err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	return nil
}

// openFiles creates the descriptors of a worker, in the order of the fd constants. It stores
// this process's ends in c, and the worker's ends in c.theirs. The caller must close both, also
// after an error.
func (c *child) openFiles(b launch) ([]*os.File, error) {
	inherited, err := openInherited()
	if err != nil {
		return nil, err
	}
	out, errs, err := c.openOutput(b)
	if err != nil {
		return nil, fmt.Errorf("open output: %w", err)
	}
	control, err := c.openControl()
	if err != nil {
		return nil, fmt.Errorf("open control socket: %w", err)
	}
	if c.crash, err = sys.Memfd("shoal-crash"); err != nil {
		return nil, err
	}
	domain, err := domainFiles()
	if err != nil {
		return nil, err
	}
	files := append([]*os.File{inherited.null, out, errs, control, c.crash}, domain...)
	return append(files, inherited.lifelines...), nil
}

// openOutput returns the worker's stdout and stderr: the write ends of two pipes, or two files
// if b.files is set. It stores this process's ends in c.stdout and c.stderr; with files,
// c.stderr is the file itself and c.stdout is nil.
func (c *child) openOutput(b launch) (out, errs *os.File, err error) {
	if b.files != nil {
		out, errs, err = b.files()
		c.theirs, c.stderr = append(c.theirs, out), errs
		return out, errs, err
	}
	if c.stdout, out, err = os.Pipe(); err != nil {
		return nil, nil, err
	}
	c.theirs = append(c.theirs, out)
	if c.stderr, errs, err = os.Pipe(); err != nil {
		return nil, nil, err
	}
	c.theirs = append(c.theirs, errs)
	sys.Opened(c.stdout, out, c.stderr, errs)
	return out, errs, nil
}

// openControl creates the control socket, stores this process's end in c.control, and returns
// the worker's end. Only this process's end is non-blocking, as Go's poller requires. The worker
// does the same with its own end.
func (c *child) openControl() (*os.File, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	their := os.NewFile(uintptr(fds[1]), "control")
	c.theirs = append(c.theirs, their)
	c.control, err = newPollable(fds[0], "control")
	sys.Opened(c.control, their)
	return their, err
}

// newPollable returns a file for fd that uses Go's poller, so that a read blocks a goroutine
// instead of a thread. The file owns fd. If fd cannot be made non-blocking, it returns the file
// together with the error.
func newPollable(fd int, name string) (*os.File, error) {
	err := syscall.SetNonblock(fd, true)
	return os.NewFile(uintptr(fd), name), err
}

// inheritedFiles contains the files that every worker of this process inherits.
type inheritedFiles struct {
	null      *os.File   // stdin
	lifelines []*os.File // read ends; the root's is first, this process's is last
	own       *os.File   // write end of this process's lifeline; never written to
}

// lineage contains the inherited files after the first worker has been started.
var lineage struct {
	sync.Mutex
	files *inheritedFiles
}

// openInherited returns the files that every worker of this process inherits. The first call
// opens them, and they stay open while this process lives; the caller must not close them. If
// this fails, for example because too many files are open, the next call tries again.
//
// Note [Lifelines]: the write end of a process's lifeline exists only in that process. Therefore
// the kernel closes it when the process dies, for any reason:
// https://man7.org/linux/man-pages/man7/pipe.7.html. All descendants have the read end. A
// program that is being started has a copy between fork and exec, which close-on-exec closes.
func openInherited() (*inheritedFiles, error) {
	lineage.Lock()
	defer lineage.Unlock()
	if lineage.files != nil {
		return lineage.files, nil
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	var fds [2]int
	if err := syscall.Pipe2(fds[:], syscall.O_CLOEXEC); err != nil {
		null.Close()
		return nil, fmt.Errorf("open lifeline: %w", err)
	}
	l := &inheritedFiles{null: null, own: os.NewFile(uintptr(fds[1]), "lifeline")}
	if self != nil {
		l.lifelines = append(l.lifelines, self.lifelines...)
	}
	l.lifelines = append(l.lifelines, os.NewFile(uintptr(fds[0]), "lifeline"))
	lineage.files = l
	return l, nil
}

// drain copies the bytes that are left in r to w without blocking, and uses buf as its buffer.
// It ignores errors. It stops at [maxLeft] bytes, because a process may go on writing.
func drain(r *os.File, w io.Writer, buf []byte) {
	raw, err := r.SyscallConn()
	if err != nil {
		return
	}
	raw.Control(func(fd uintptr) {
		for left := maxLeft; left > 0; {
			n, err := syscall.Read(int(fd), buf)
			if err == syscall.EINTR {
				continue
			}
			if err != nil || n <= 0 {
				return
			}
			w.Write(buf[:n])
			left -= n
		}
	})
}

// maxLeft is larger than the kernel's buffer of a pipe or a socket.
const maxLeft = 8 << 20

// death detects the end of one process by its pidfd. The zero death belongs to no process; only
// its close may be called.
type death struct{ pidfd *sys.Pidfd }

// wait blocks the goroutine, not a thread, until the process has ended. It does not reap the
// process. So the process id is not reused before [os.Process.Wait] is called.
func (d death) wait() error { return d.pidfd.Wait(context.Background()) }

// hasEnded reports whether the process has ended, without blocking. It returns true if that
// cannot be determined.
func (d death) hasEnded() bool {
	ended, err := d.pidfd.Exited()
	return ended || err != nil
}

func (d death) close() {
	if d.pidfd != nil {
		d.pidfd.Close()
	}
}

// signalOf returns the signal that ended a process, or nil. It also returns nil if the process
// exited by itself.
func signalOf(s *os.ProcessState) os.Signal {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return w.Signal()
	}
	return nil
}
