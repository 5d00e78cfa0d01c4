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

// adopt makes a worker of this process if it was started as one. It hides the variable and the
// descriptors from all code that runs later. From now on this process notices a panic of any
// goroutine and the death of an ancestor.
func adopt() *worker {
	value, ok := os.LookupEnv(workerEnvKey)
	if !ok {
		return nil
	}
	os.Unsetenv(workerEnvKey)
	m, err := parseMark(value)
	other, refused := err.(versionError)
	switch {
	case (err == nil || refused) && !isSocket(fdControl):
		err = fmt.Errorf("shoal: %s is set, but descriptor %d is not a worker's; unset it", workerEnvKey, fdControl)
	case refused:
		syscall.Write(fdControl, appendFrame(nil, frameRefused, []byte(other.Error())))
		err = fmt.Errorf("shoal: %w", err)
	}
	if err != nil {
		fatal(err)
	}
	// ps -e and top would show "exe". Package initialisation runs on the main thread, whose name is
	// the name of the process.
	sys.SetThreadName(strings.TrimPrefix(os.Args[0], titlePrefix))
	w := &worker{workerEnv: m}
	for fd := fdControl; fd < fdLifelines+m.lifelines; fd++ {
		syscall.CloseOnExec(fd)
	}
	w.watchOver()
	if w.control, err = pollable(fdControl, "control"); err != nil {
		fatal(err)
	}
	if err := catchCrashes(os.NewFile(fdCrash, "crash")); err != nil {
		fatal(err)
	}
	// A terminal sends SIGINT to every process, and the root turns it into a cancellation. The
	// worker catches SIGINT and does not ignore it, because an ignored signal stays ignored in
	// programs that the worker starts. It does so on another goroutine, because the runtime takes
	// its time for it.
	w.guarded.Go(func() { signal.Notify(make(chan os.Signal, 1), os.Interrupt) })
	w.domain = [2]*os.File{os.NewFile(fdDomainControl, "domain"), os.NewFile(fdDomainData, "domain")}
	return w
}

// fatal ends a process that cannot be a worker.
func fatal(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(exitPanicked)
}

func isSocket(fd int) bool {
	_, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_TYPE)
	return err == nil
}

// watchOver starts the thread that ends this process when an ancestor has died, whatever else the
// process is doing.
func (w *worker) watchOver() {
	fds := make([]int, w.workerEnv.lifelines)
	for i := range fds {
		fds[i] = fdLifelines + i
		w.lifelines = append(w.lifelines, os.NewFile(uintptr(fds[i]), "lifeline"))
	}
	o, err := sys.NewOrphanage(fds, fdControl, w.orphanGrace, exitOrphaned)
	if err != nil {
		fatal(fmt.Errorf("shoal: %w", err))
	}
	w.guarded.Add(1)
	go func() {
		runtime.LockOSThread()
		w.guarded.Done()
		o.Watch()
	}()
}

// catchCrashes has the runtime write to f when it gives up. The runtime makes a duplicate of its
// own.
func catchCrashes(f *os.File) error {
	defer f.Close()
	if err := debug.SetCrashOutput(f, debug.CrashOptions{}); err != nil {
		return fmt.Errorf("shoal: set crash output: %w", err)
	}
	return nil
}

// childrenOf lists the processes whose parent this one is, as far as the kernel tells.
func childrenOf() []string {
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	var pids []string
	for _, list := range lists {
		b, _ := os.ReadFile(list)
		pids = append(pids, strings.Fields(string(b))...)
	}
	return pids
}
