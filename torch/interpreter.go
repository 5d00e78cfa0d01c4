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

// becomePython replaces the program by the Python interpreter that started it, with code as the
// argument of -c. It returns only on an error.
func becomePython(code string) error {
	path, err := interpreterPath(os.Getppid())
	if err != nil {
		return fmt.Errorf("exec the parent's Python interpreter: %w", err)
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
	return fmt.Errorf("exec %s, the parent's Python interpreter: %w", path, syscall.Exec(path, args, os.Environ()))
}

// resourceTracker is the start of the code of multiprocessing's resource tracker. Python starts the
// tracker with SIGINT and SIGTERM blocked until the tracker ignores them, so that Ctrl-C cannot end
// it earlier:
// https://github.com/python/cpython/blob/v3.13.0/Lib/multiprocessing/resource_tracker.py. Go's
// runtime unblocks them, so this package ignores them from here on.
const resourceTracker = "from multiprocessing.resource_tracker "

// interpreterPath returns the executable path of the Python process pid as it was started, its
// sys.executable. It must be the original path: in a virtual environment the interpreter is a
// symbolic link, and the target of the link would not find the packages of the environment:
// https://github.com/python/cpython/blob/v3.13.0/Lib/site.py. If no candidate is the running
// executable, for example after setproctitle outside of an active environment, interpreterPath
// returns the path of the running executable.
func interpreterPath(pid int) (string, error) {
	program := fmt.Sprintf("/proc/%d/exe", pid)
	runs, err := os.Stat(program)
	if err != nil {
		return "", err
	}
	for _, path := range interpreterCandidates(pid) {
		if is, err := os.Stat(path); err == nil && os.SameFile(is, runs) {
			return path, nil
		}
	}
	return os.Readlink(program)
}

// interpreterCandidates returns the possible paths of the interpreter that the process pid runs:
// the first argument of the process, made absolute, and the interpreter of the active virtual
// environment.
func interpreterCandidates(pid int) (paths []string) {
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

// ignoredBy returns the signals that a process ignores, or nil if that cannot be read. A Python
// child would inherit them, but the Go runtime installs handlers for nearly all signals, so they
// must be ignored again before Python runs.
func ignoredBy(pid int) (ignored []os.Signal) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(status), "\nSigIgn:\t")
	line, _, _ := strings.Cut(rest, "\n")
	mask, _ := strconv.ParseUint(line, 16, 64)
	for n := range 31 { // higher signal numbers are used by the C library
		if mask>>n&1 == 1 {
			ignored = append(ignored, syscall.Signal(n+1))
		}
	}
	return ignored
}
