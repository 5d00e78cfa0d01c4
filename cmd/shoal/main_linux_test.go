package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/test/timeline"
)

func TestMain(m *testing.M) {
	if shoal.IsWorker() {
		main() // a script's shoal has started this binary again
	}
	testscript.Main(tests{m}, map[string]func(){"shoal": main, "hostile": beHostile})
}

// tests run with a folder for the programs that stand beside the command.
type tests struct{ *testing.M }

func (m tests) Run() int {
	dir, err := os.MkdirTemp("", "shoal-beside-*")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	standAt = dir
	return m.M.Run()
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"disturb": disturb, "program": program, "status": status, "idx": idx, "build": build, "mirror": mirror,
			"interrupt": interrupt, "taken": taken, "terminal": terminal, "traced": traced,
		},
	})
}

// disturb SIGNAL WHOM PROGRAM ARG… runs a program, and when lines of two workers are seen on its
// standard error, which have done steps by then, sends the signal to the second one or to the root.
// After the first line already it sends the signal to all, as a terminal does.
// The files output, errors and exit have what it wrote and its exit status.
func disturb(ts *testscript.TestScript, _ bool, args []string) {
	signals := map[string]syscall.Signal{"KILL": syscall.SIGKILL, "INT": syscall.SIGINT}
	self, err := os.Executable()
	ts.Check(err)
	var output, errors strings.Builder
	c := exec.Cmd{Path: self, Args: args[2:], Dir: ts.MkAbs("."),
		Env: append(os.Environ(), "TMPDIR="+ts.Getenv("TMPDIR")), Stdout: &output,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true}}
	pipe, err := c.StderrPipe()
	ts.Check(err)
	ts.Check(c.Start())
	done, trained := false, map[string]bool{}
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		fmt.Fprintln(&errors, lines.Text())
		worker, _, ok := strings.Cut(lines.Text(), "\trank ")
		if !ok || done {
			continue
		}
		if trained[worker] = true; len(trained) < 2 && args[1] != "all" {
			continue
		}
		pid := c.Process.Pid
		switch args[1] {
		case "worker":
			pid, err = strconv.Atoi(worker)
			ts.Check(err)
		case "all":
			pid = -pid
		}
		done = true
		ts.Check(syscall.Kill(pid, signals[args[0]]))
	}
	c.Wait()
	for name, text := range map[string]string{
		"output": output.String(), "errors": errors.String(), "exit": strconv.Itoa(c.ProcessState.ExitCode()),
	} {
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
}

// interrupt PROGRAM ARG… runs a program, and interrupts it when it has written a line. The files
// output, errors and exit have what it wrote and its exit status.
func interrupt(ts *testscript.TestScript, _ bool, args []string) {
	self, err := os.Executable()
	ts.Check(err)
	var output, errors strings.Builder
	c := exec.Cmd{Path: self, Args: args, Dir: ts.MkAbs("."),
		Env: append(os.Environ(), "PATH="+ts.Getenv("PATH")), Stderr: &errors}
	pipe, err := c.StdoutPipe()
	ts.Check(err)
	ts.Check(c.Start())
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		if output.Len() == 0 {
			ts.Check(c.Process.Signal(os.Interrupt))
		}
		fmt.Fprintln(&output, lines.Text())
	}
	c.Wait()
	for name, text := range map[string]string{
		"output": output.String(), "errors": errors.String(), "exit": strconv.Itoa(c.ProcessState.ExitCode()),
	} {
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
}

// terminal KEYS PROGRAM ARG… runs a program at a terminal of its own, at which the keys are typed,
// for a minute at most. The files output, errors and exit have what it wrote and its exit status.
func terminal(ts *testscript.TestScript, _ bool, args []string) {
	self, err := os.Executable()
	ts.Check(err)
	keys, err := strconv.Unquote(`"` + args[0] + `"`)
	ts.Check(err)
	c := exec.Cmd{Path: self, Args: args[1:], Dir: ts.MkAbs("."),
		Env: append(os.Environ(), "TERM="+ts.Getenv("TERM"), "NO_COLOR="+ts.Getenv("NO_COLOR"))}
	tty, err := pty.Start(&c)
	ts.Check(err)
	late := time.AfterFunc(time.Minute, func() { c.Process.Kill() })
	defer late.Stop()
	var output bytes.Buffer
	for b, typed := make([]byte, 4096), false; ; {
		n, err := tty.Read(b)
		output.Write(b[:n])
		if err != nil {
			break
		}
		if !typed { // the program runs
			io.WriteString(tty, keys)
			typed = true
		}
	}
	c.Wait()
	ts.Check(tty.Close())
	for name, text := range map[string]string{
		"output": output.String(), "errors": "", "exit": strconv.Itoa(c.ProcessState.ExitCode()),
	} {
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
}

// traced FILE N whole|cut fails unless the file is a trace of at least N workers that train. A
// whole one says of every moment of an epoch what was done.
func traced(ts *testscript.TestScript, _ bool, args []string) {
	l, err := timeline.Read(ts.MkAbs(args[0]))
	ts.Check(err)
	wanted, err := strconv.Atoi(args[1])
	ts.Check(err)
	workers, roots := make(map[int]bool), 0
	for _, k := range l.Tracks {
		switch {
		case k.Name == "run":
			roots++
		case k.Name == "train":
			workers[k.PID] = true
			if !strings.HasPrefix(l.Processes[k.PID], "hogwild ") {
				ts.Fatalf("process %d is %q", k.PID, l.Processes[k.PID])
			}
		}
		if k.Name != "train" || args[2] != "whole" {
			continue
		}
		var epochs, said time.Duration
		for _, s := range k.Spans {
			if s.Depth == 0 {
				epochs += s.End - s.Begin
			} else {
				said += s.End - s.Begin
			}
		}
		if 0 < epochs && epochs < time.Millisecond {
			continue // it was interrupted before it did anything
		}
		if epochs == 0 || said < epochs*8/10 || said > epochs {
			ts.Fatalf("process %d: spans of %v in epochs of %v", k.PID, said, epochs)
		}
		for _, name := range []string{"batch wait", "forward", "backward", "step"} {
			if _, n := k.Sum(name); n == 0 {
				ts.Fatalf("process %d never does %q", k.PID, name)
			}
		}
	}
	if len(workers) < wanted || roots > 1 || args[2] == "whole" && (roots != 1 || l.Lost > 0) {
		ts.Fatalf("%d workers and %d roots, want %d workers; %d spans lost", len(workers), roots, wanted, l.Lost)
	}
}

// taken listens on a port of the loopback; $TAKEN is its number.
func taken(ts *testscript.TestScript, _ bool, _ []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { l.Close() })
	ts.Setenv("TAKEN", strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
}

// program FILE makes a file one that can be run.
func program(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.Chmod(ts.MkAbs(args[0]), 0o700))
}

// status N fails unless the program that was disturbed exited with N.
func status(ts *testscript.TestScript, _ bool, args []string) {
	if got := ts.ReadFile("exit"); got != args[0] {
		ts.Fatalf("exit status %s, want %s\n%s", got, args[0], ts.ReadFile("errors"))
	}
}

// idx FILE N writes the header of n images of 28×28 bytes, and no image; gzipped if the name ends
// so.
func idx(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.ParseUint(args[1], 10, 32)
	ts.Check(err)
	header := []byte{0, 0, 8, 3}
	for _, dim := range []uint32{uint32(n), 28, 28} {
		header = binary.BigEndian.AppendUint32(header, dim)
	}
	if strings.HasSuffix(args[0], ".gz") {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write(header)
		ts.Check(z.Close())
		header = b.Bytes()
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), header, 0o600))
}

// build COMMAND builds one of the module's commands into the folder bin of the script.
func build(ts *testscript.TestScript, _ bool, args []string) {
	c := exec.Command("go", "build", "-o", ts.MkAbs("bin")+"/", "../"+args[0])
	if out, err := c.CombinedOutput(); err != nil {
		ts.Fatalf("%s: %v\n%s", c, err, out)
	}
}

// mirror DIR serves the files of a folder; $MIRROR is its address.
func mirror(ts *testscript.TestScript, _ bool, args []string) {
	s := httptest.NewServer(http.FileServer(http.Dir(ts.MkAbs(args[0]))))
	ts.Defer(s.Close)
	ts.Setenv("MIRROR", s.URL)
}
