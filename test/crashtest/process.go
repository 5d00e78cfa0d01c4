//go:build shoalcrash

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// A spec tells a child process which scenario to run and where to die.
type spec struct {
	Scenario string
	Reap     bool // reap instead of running the scenario
	Site     string
	Phase    string
	Nth      int
	Record   bool
	Idle     bool   // never reap
	Pause    bool   // report the point and wait instead of dying
	Stop     string // site at which to stop once until resumed
	Halt     bool   // stop the whole process at the point instead of dying
	Args     []uint64
}

// A child is a process that has joined the bench's domain. It reports in lines, and waits for
// the bench where its reports ask for an answer.
type child struct {
	cmd   *exec.Cmd
	down  *os.File
	lines chan string // closed at its death
	hits  map[string]int
}

// patience is the time limit for every wait for a child. It far exceeds the time that any wait
// should need.
const patience = 30 * time.Second

// start runs this program again in a role, such as victim, as a child that inherits files as
// descriptors 3 and up, followed by its two pipes. s, in JSON, is its argument. It returns the
// pipe with the child's reports, which the caller must close. The caller must call waitKilled.
func start(role string, s any, files ...*os.File) (*child, *os.File, error) {
	arg, err := json.Marshal(s)
	if err != nil {
		return nil, nil, err
	}
	upR, upW, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer upW.Close()
	downR, downW, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, upR.Close())
	}
	defer downR.Close()
	c := &child{down: downW, lines: make(chan string, 1024)}
	c.cmd = exec.Command("/proc/self/exe", role, string(arg))
	c.cmd.ExtraFiles = append(append(c.cmd.ExtraFiles, files...), upW, downR)
	c.cmd.Stderr = os.Stderr
	c.cmd.Env = append(os.Environ(), "GOMAXPROCS=2", "GOGC=off")
	if err := c.cmd.Start(); err != nil {
		return nil, nil, errors.Join(err, upR.Close(), downW.Close())
	}
	return c, upR, nil
}

// spawn is like start, but reads the child's reports as lines, for [child.next].
func spawn(role string, s any, files ...*os.File) (*child, error) {
	c, up, err := start(role, s, files...)
	if err != nil {
		return nil, err
	}
	go func() {
		defer close(c.lines)
		defer up.Close()
		r := bufio.NewReader(up)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return // a partial line does not count
			}
			c.lines <- strings.TrimSpace(line)
		}
	}()
	return c, nil
}

// next returns the child's next line, or "" after its death. If none comes for patience, it
// kills the child and returns an error line.
func (c *child) next() string {
	select {
	case l := <-c.lines:
		return l
	case <-time.After(patience):
		c.cmd.Process.Signal(syscall.SIGQUIT) // prints its goroutines on stderr
		time.Sleep(100 * time.Millisecond)
		c.cmd.Process.Kill()
		return "E hangs"
	}
}

func (c *child) tell() { c.down.Write([]byte{1}) }

// waitKilled waits for the process, closes its pipe, and reports whether it was killed by
// SIGKILL.
func (c *child) waitKilled() bool {
	c.cmd.Wait()
	c.down.Close()
	st, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && st.Signaled() && st.Signal() == syscall.SIGKILL
}

// A mouth is the child's side of the pipes: it reports lines to the bench and waits for answers.
type mouth struct{ up, down *os.File }

func (m mouth) say(format string, args ...any) { fmt.Fprintf(m.up, format+"\n", args...) }

// hear waits for a byte from the bench. It exits the process if the bench has died.
func (m mouth) hear() {
	if _, err := m.down.Read(make([]byte, 1)); err != nil {
		os.Exit(3)
	}
}
