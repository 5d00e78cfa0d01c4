package torch

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// becomePython replaces the program by the interpreter that started it, with the code. It returns
// only on an error.
func becomePython(code string) error {
	path, err := interpreter(os.Getppid())
	if err != nil {
		return fmt.Errorf("become the Python of the parent process: %w", err)
	}
	ignored := ignoredBy(os.Getppid())
	if strings.HasPrefix(code, resourceTracker) {
		ignored = append(ignored, os.Interrupt, syscall.SIGTERM)
	}
	if len(ignored) > 0 {
		signal.Ignore(ignored...)
	}
	args := append([]string{path}, os.Args[1:]...)
	args[slices.Index(args, "-c")+1] = code
	return fmt.Errorf("become %s, the Python of the parent process: %w", path, syscall.Exec(path, args, os.Environ()))
}

// resourceTracker is the begin of the code of one of the helpers. Python starts this helper with
// the signals blocked that the helper will ignore, so that Ctrl-C does not end it before. Go's
// runtime unblocks them, so they are ignored from here on.
const resourceTracker = "from multiprocessing.resource_tracker "

// interpreter is the path by which a process of Python was started, its sys.executable. The exact
// path matters: in a virtual environment the interpreter is a link, and the link's target would not
// find the packages there. Sometimes none of the paths is that of the running program, as after
// setproctitle outside an active environment. Then interpreter is the path of the running program.
func interpreter(pid int) (string, error) {
	program := fmt.Sprintf("/proc/%d/exe", pid)
	runs, err := os.Stat(program)
	if err != nil {
		return "", err
	}
	for _, path := range candidates(pid) {
		if is, err := os.Stat(path); err == nil && os.SameFile(is, runs) {
			return path, nil
		}
	}
	return os.Readlink(program)
}

// candidates are paths that may be those by which a process was started: its first argument, made
// absolute, and that of the active virtual environment.
func candidates(pid int) (paths []string) {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	first, _, _ := bytes.Cut(line, []byte{0})
	name := string(first)
	switch {
	case filepath.IsAbs(name):
		paths = append(paths, name)
	case strings.Contains(name, "/"):
		dir, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
		paths = append(paths, filepath.Join(dir, name))
	case name != "":
		if path, err := exec.LookPath(name); err == nil || errors.Is(err, exec.ErrDot) {
			path, _ = filepath.Abs(path)
			paths = append(paths, path)
		}
	}
	if env := os.Getenv("VIRTUAL_ENV"); env != "" {
		paths = append(paths, filepath.Join(env, "bin", "python"))
	}
	return paths
}

// ignoredBy are the signals that a process ignores. Python's children of the process would ignore
// them as well. Children that begin as programs of Go do not, because Go's runtime handles nearly
// all signals.
func ignoredBy(pid int) (ignored []os.Signal) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(status), "\nSigIgn:\t")
	line, _, _ := strings.Cut(rest, "\n")
	mask, _ := strconv.ParseUint(line, 16, 64)
	for n := range 31 { // higher numbers belong to the C library
		if mask>>n&1 == 1 {
			ignored = append(ignored, syscall.Signal(n+1))
		}
	}
	return ignored
}
