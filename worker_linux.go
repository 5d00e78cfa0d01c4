package shoal

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/shoal-mp/shoal/internal/sys"
)

// initWorker returns the worker if this process was started as one, or nil. If the parent has
// another version or the variable was set by another program, it prints an error and exits. It
// hides the variable and the descriptors from code that runs later. From then on, panics of any
// goroutine and the death of an ancestor are detected.
func initWorker() *worker {
	value, ok := os.LookupEnv(workerEnvKey)
	if !ok {
		return nil
	}
	os.Unsetenv(workerEnvKey)
	m, err := parseMark(value)
	other, refused := err.(versionError)
	switch {
	case (err == nil || refused) && !isSocket(fdControl):
		err = fmt.Errorf("shoal: %s is set, but descriptor %d is not a worker's control socket: unset it",
			workerEnvKey, fdControl)
	case refused:
		syscall.Write(fdControl, appendFrame(nil, frameRefused, []byte(other.Error())))
		err = fmt.Errorf("shoal: %w", err)
	}
	if err != nil {
		exitFatal(err)
	}
	// Without this, ps -e and top would show "exe". Package initialization runs on the main thread,
	// and its name is the name of the process.
	sys.SetThreadName(strings.TrimPrefix(os.Args[0], titlePrefix))
	w := &worker{workerEnv: m}
	for fd := fdControl; fd < fdLifelines+m.lifelines; fd++ {
		syscall.CloseOnExec(fd)
	}
	w.watchOver()
	if w.control, err = newPollable(fdControl, "control"); err != nil {
		exitFatal(err)
	}
	if err := catchCrashes(os.NewFile(fdCrash, "crash")); err != nil {
		exitFatal(err)
	}
	// A terminal sends SIGINT to every process, and the root converts it to a cancellation. The
	// worker catches SIGINT instead of ignoring it, because an ignored signal stays ignored in
	// programs that the worker starts. It does so on another goroutine, because signal.Notify is
	// slow.
	w.guarded.Go(func() { signal.Notify(make(chan os.Signal, 1), os.Interrupt) })
	w.domain = [2]*os.File{os.NewFile(fdDomainControl, "domain"), os.NewFile(fdDomainData, "domain")}
	return w
}

// exitFatal prints err and ends this process, which cannot be a worker. It never returns.
func exitFatal(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(exitPanicked)
}

func isSocket(fd int) bool {
	_, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_TYPE)
	return err == nil
}

// watchOver starts a thread that ends this process after an ancestor has died, regardless of the
// state of other threads.
func (w *worker) watchOver() {
	fds := make([]int, w.workerEnv.lifelines)
	for i := range fds {
		fds[i] = fdLifelines + i
		w.lifelines = append(w.lifelines, os.NewFile(uintptr(fds[i]), "lifeline"))
	}
	o, err := sys.NewOrphanage(fds, fdControl, w.orphanGrace, exitOrphaned)
	if err != nil {
		exitFatal(fmt.Errorf("shoal: %w", err))
	}
	w.guarded.Add(1)
	go func() {
		runtime.LockOSThread()
		w.guarded.Done()
		o.Watch()
	}()
}

// catchCrashes makes the runtime write its crash output to f. It closes f, which the runtime has
// duplicated.
func catchCrashes(f *os.File) error {
	defer f.Close()
	if err := debug.SetCrashOutput(f, debug.CrashOptions{}); err != nil {
		return fmt.Errorf("shoal: set crash output: %w", err)
	}
	return nil
}

// childrenOf returns the process ids, in decimal, of all children of this process according to
// the kernel, or none if they cannot be read.
func childrenOf() []string {
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	var pids []string
	for _, list := range lists {
		b, _ := os.ReadFile(list)
		pids = append(pids, strings.Fields(string(b))...)
	}
	return pids
}
