package pystack_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/procfs"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/pystack"
)

// interpreters returns the programs of SHOAL_PYTHONS or SHOAL_TORCH_PYTHONS, or python3.
func interpreters(t *testing.T) (list []string) {
	for _, name := range []string{"SHOAL_PYTHONS", "SHOAL_TORCH_PYTHONS"} {
		if v := os.Getenv(name); v != "" {
			list = append(list, strings.Split(v, ":")...)
		}
	}
	if len(list) == 0 {
		python, err := exec.LookPath("python3")
		if err != nil {
			t.Skip("no python3 on the PATH")
		}
		list = append(list, python)
	}
	return list
}

const program = `import threading, time
def inner(seconds):
    x = 1
    time.sleep(
        seconds)
def outer():
    inner(1000)
threading.Thread(target=outer, daemon=True).start()
time.sleep(0.2)
print("started", flush=True)
inner(1000)
`

// run starts a program with a Python interpreter and returns its state after its first line.
func run(t *testing.T, python, source string) *procfs.Process {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program.py")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, file)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	if !bufio.NewScanner(out).Scan() {
		t.Fatal("the program printed nothing")
	}
	p := &procfs.Process{Stat: procfs.Stat{PID: cmd.Process.Pid}}
	procfs.Machine.ReadMaps(p)
	procfs.Machine.ReadThreads(p, true)
	return p
}

// supported skips interpreters that are not supported.
func supported(t *testing.T, python string) {
	out, err := exec.Command(python, "-c", `import sys, platform
print(platform.python_implementation(), (3, 9) <= sys.version_info[:2] <= (3, 14))`).Output()
	if err != nil || strings.TrimSpace(string(out)) != "CPython True" {
		t.Skipf("%s is not CPython 3.9 to 3.14: %s", python, out)
	}
}

func TestRead_FindsFunctionsAndLinesOfAllThreads(t *testing.T) {
	for _, python := range interpreters(t) {
		t.Run(python, func(t *testing.T) {
			supported(t, python)
			p := run(t, python, program)
			stacks := readInner(t, p)
			if len(stacks) != 2 || len(p.Threads) != 2 {
				t.Fatalf("%d stacks of %d threads", len(stacks), len(p.Threads))
			}
			for _, s := range stacks {
				want := []string{"inner:4", "<module>:11"}
				if s.TID != p.PID {
					want = []string{"inner:4", "outer:7"}
				}
				for i, w := range want {
					name, line, _ := strings.Cut(w, ":")
					f := s.Frames[i]
					if f.Function != name || filepath.Base(f.File) != "program.py" ||
						!strings.HasSuffix(f.String(), ":"+line+")") {
						t.Errorf("thread %d, frame %d: %v, want %s", s.TID, i, f, w)
					}
				}
			}
		})
	}
}

// readInner reads the stacks again and again, until both threads sleep.
func readInner(t *testing.T, p *procfs.Process) []pystack.Stack {
	t.Helper()
	for {
		stacks, err := pystack.Read(procfs.Machine, p)
		if os.IsPermission(err) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		inner := 0
		for _, s := range stacks {
			if len(s.Frames) > 1 && s.Frames[0].Function == "inner" {
				inner++
			}
		}
		if inner == 2 {
			return stacks
		}
		time.Sleep(10 * time.Millisecond)
	}
}

const locks = `import multiprocessing, time
lock = multiprocessing.Lock()
limited = multiprocessing.BoundedSemaphore(7)
free = multiprocessing.Lock()
lock.acquire()
limited.acquire()
limited.acquire()
print("started", flush=True)
time.sleep(1000)
`

func TestFindSemLocks_FindsCountsAndLimits(t *testing.T) {
	for _, python := range interpreters(t) {
		t.Run(python, func(t *testing.T) {
			supported(t, python)
			p := run(t, python, locks)
			found, err := pystack.FindSemLocks(procfs.Machine, p, 0, 0)
			if os.IsPermission(err) {
				t.Skip(err)
			}
			if err != nil || len(found) != 3 {
				t.Fatalf("found %v, %v; want 3 locks", found, err)
			}
			counts := map[[2]int]int{}
			for addr, l := range found {
				again, err := pystack.FindSemLocks(procfs.Machine, p, addr, l.Object)
				if err != nil || len(again) != 1 || again[addr] != l {
					t.Errorf("with the address of the object, found %v, %v; want only %v", again, err, l)
				}
				counts[[2]int{l.Max, l.Count}]++
				st, err := pystack.ReadSemaphore(procfs.Machine, p.PID, addr)
				if want := l.Max - l.Count; err != nil || st.Value != want {
					t.Errorf("semaphore with %+v has the value %d, want %d; %v", l, st.Value, want, err)
				}
			}
			for _, want := range [][2]int{{1, 1}, {7, 2}, {1, 0}} {
				if counts[want] != 1 {
					t.Errorf("no lock with limit and count %v: %v", want, found)
				}
			}
		})
	}
}
