package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

const (
	progressEvery = time.Minute
	tailLines     = 40
	tailBytes     = 64 << 10
)

// A result is the outcome of a step that was started.
type result struct {
	began time.Time
	took  time.Duration
	cpu   time.Duration // of its processes that were waited for
	ended bool
	err   error
}

// A runner runs the selected steps of a table, once. Steps of the main and the side lane wait
// for the first step outside the install lane, which is the README's test command. newRunner
// makes it.
type runner struct {
	steps []step
	logs  string   // folder for the output of steps
	env   []string // in addition to the runner's own
	apart []string // command that runs another one apart from the shared memory of this system
	out   io.Writer

	began   time.Time
	print   sync.Mutex
	mu      sync.Mutex
	changed *sync.Cond        // left, results, failed or stopped
	left    map[string][]step // steps that have not begun, by lane
	results map[string]*result
	failed  bool
	stopped bool // no other step starts

	keepGoing bool // a failure stops no other step
}

func newRunner(steps []step, logs string, env []string, out io.Writer) *runner {
	r := &runner{steps: steps, logs: logs, env: env, out: out, began: time.Now(), results: make(map[string]*result)}
	r.changed = sync.NewCond(&r.mu)
	r.apart = ownSharedMemory()
	return r
}

// ownSharedMemory returns a command, to be put before another one, that gives this other one a
// /dev/shm of its own. It returns nil if this is not permitted; the side lane then joins the
// main lane, because some tests look at every name in /dev/shm.
func ownSharedMemory() []string {
	apart := []string{"unshare", "--mount", "sh", "-c", `mount -t tmpfs tmpfs /dev/shm && exec "$@"`, "sh"}
	if exec.Command(apart[0], append(slices.Clone(apart[1:]), "true")...).Run() != nil {
		return nil
	}
	return apart
}

// run runs all steps and returns true if each of them succeeded. Once the context ends, and
// after a failure unless keepGoing is set, it starts no other step. It terminates the running
// steps if the context ends, and waits for them in any case.
func (r *runner) run(ctx context.Context) bool {
	cancel := func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.failed, r.stopped = true, true
		r.changed.Broadcast()
	}
	if ctx.Err() != nil { // AfterFunc would call it at some later time
		cancel()
	}
	defer context.AfterFunc(ctx, cancel)()
	progress := time.NewTicker(progressEvery)
	defer progress.Stop()
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-progress.C:
				r.printf("-- %s\n", r.progress())
			case <-done:
				return
			}
		}
	}()
	r.left = make(map[string][]step)
	for _, s := range r.steps {
		r.left[r.lane(s)] = append(r.left[r.lane(s)], s)
	}
	var lanes sync.WaitGroup
	for _, lane := range []string{laneMain, laneSide, laneInstall} {
		lanes.Go(func() { r.runLane(ctx, lane) })
	}
	lanes.Wait()
	close(done)
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.failed
}

// lane returns the lane on which a step runs: the main lane instead of the side lane if the side
// lane cannot have a /dev/shm of its own.
func (r *runner) lane(s step) string {
	if s.lane == laneSide && r.apart == nil {
		return laneMain
	}
	return s.lane
}

// runLane runs the steps of a lane, one after another, and then, on the side lane, the steps
// that the main lane has not come to.
func (r *runner) runLane(ctx context.Context, lane string) {
	for {
		s, ok := r.awaitStep(lane)
		if !ok {
			return
		}
		r.runStep(ctx, s, lane)
	}
}

// awaitStep waits until a step for a lane may begin, and removes it from r.left. It returns
// false if there is none left, or no other step may start.
func (r *runner) awaitStep(lane string) (s step, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.stopped {
		from, i := lane, slices.IndexFunc(r.left[lane], r.ready)
		if len(r.left[lane]) == 0 {
			if lane != laneSide || r.apart == nil || len(r.left[laneMain]) == 0 {
				return step{}, false
			}
			from, i = laneMain, lastIndexFunc(r.left[laneMain], r.ready)
		}
		if i >= 0 {
			s = r.left[from][i]
			r.left[from] = slices.Delete(r.left[from], i, i+1)
			r.results[s.name] = &result{began: time.Now()}
			r.changed.Broadcast() // the side lane ends when the main lane has no step left
			return s, true
		}
		r.changed.Wait()
	}
	return step{}, false
}

func lastIndexFunc(steps []step, f func(step) bool) int {
	for i, s := range slices.Backward(steps) {
		if f(s) {
			return i
		}
	}
	return -1
}

// ready reports whether a step may begin: the steps that it needs, and the first step for the
// main and side lanes, have ended. The caller must hold r.mu.
func (r *runner) ready(s step) bool {
	ended := func(name string) bool {
		missing := !slices.ContainsFunc(r.steps, func(s step) bool { return s.name == name })
		return missing || r.results[name] != nil && r.results[name].ended
	}
	for _, name := range s.needs {
		if !ended(name) {
			return false
		}
	}
	first := slices.IndexFunc(r.steps, func(s step) bool { return s.lane != laneInstall })
	return s.lane == laneInstall || s.name == r.steps[first].name || ended(r.steps[first].name)
}

// runStep runs a step on a lane, waits for it, records its result and prints its output.
func (r *runner) runStep(ctx context.Context, s step, lane string) {
	r.printf("-- %s: %s begins\n", minutes(time.Since(r.began)), s.name)
	cpu, err := r.execute(ctx, s, lane)
	r.mu.Lock()
	res := r.results[s.name]
	res.took, res.cpu, res.err, res.ended = time.Since(res.began), cpu, err, true
	r.failed = r.failed || err != nil
	r.stopped = r.stopped || err != nil && !r.keepGoing
	r.changed.Broadcast()
	r.mu.Unlock()

	log, readErr := os.ReadFile(r.log(s.name))
	if readErr != nil {
		log = []byte(readErr.Error())
	}
	r.printf("\n== %s: %s after %.0f s\n%s\n", s.name, status(err), res.took.Seconds(), bytes.TrimRight(log, "\n"))
}

func (r *runner) log(name string) string { return filepath.Join(r.logs, name+".log") }

// execute runs the commands of a step in a process group of their own, which it ends with them,
// and returns their CPU time. Their output goes to the step's log. Commands on the side lane
// have a /dev/shm of their own. The error says if the step failed or was above its limit.
func (r *runner) execute(ctx context.Context, s step, lane string) (cpu time.Duration, err error) {
	log, err := os.Create(r.log(s.name))
	if err != nil {
		return 0, err
	}
	defer log.Close()
	args := []string{"bash", "-euo", "pipefail", "-c", s.script}
	if lane == laneSide {
		args = append(slices.Clone(r.apart), args...)
	}
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	cmd := exec.CommandContext(limited, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), r.env...)
	setGroup(cmd)
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	err = cmd.Wait()
	cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if killGroup(cmd) { // it would disturb the other steps
		fmt.Fprintln(log, "ci: killed processes that the step left behind")
	}
	if errors.Is(limited.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("above its limit of %v", s.limit)
	}
	return cpu, err
}

func (r *runner) printf(format string, args ...any) {
	r.print.Lock()
	defer r.print.Unlock()
	fmt.Fprintf(r.out, format, args...)
}

// progress describes the running steps, with the last line that each has printed.
func (r *runner) progress() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := minutes(time.Since(r.began)) + ": running"
	for _, s := range r.steps {
		if res := r.results[s.name]; res != nil && !res.ended {
			last := tail(r.log(s.name), 1)
			line += fmt.Sprintf("\n     %-16s %s  %.100s", s.name, minutes(time.Since(res.began)), last)
		}
	}
	return line
}

// summary prints the table of all steps, with their seconds and CPU seconds and the reasons why
// they were selected, and the last lines of the steps that failed.
func (r *runner) summary(all []step, reasons map[string]string) {
	r.printf("\n%-16s %-8s %8s %6s  %-8s %s\n", "step", "group", "seconds", "cpu", "status", "selected")
	var cpu time.Duration
	for _, s := range all {
		seconds, busy, state := "", "", "-"
		if res := r.results[s.name]; res != nil && res.ended {
			seconds, busy = fmt.Sprintf("%.0f", res.took.Seconds()), fmt.Sprintf("%.0f", res.cpu.Seconds())
			state = status(res.err)
			cpu += res.cpu
		} else if reasons[s.name] != "" {
			state = "not run"
		}
		r.printf("%-16s %-8s %8s %6s  %-8s %s\n", s.name, groupName(s.group), seconds, busy, state, reasons[s.name])
	}
	r.printf("%-16s %-8s %8.0f %6.0f\n", "all", "", time.Since(r.began).Seconds(), cpu.Seconds())
	for _, s := range r.steps {
		if res := r.results[s.name]; res != nil && res.err != nil {
			r.printf("\nFAILED: %s after %.0f s: %v. Its last lines:\n%s\n",
				s.name, res.took.Seconds(), res.err, tail(r.log(s.name), tailLines))
		}
	}
}

// tail returns the last lines of a file, at most as many as given, or the text of the error if
// it cannot be read.
func tail(file string, lines int) string {
	f, err := os.Open(file)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > tailBytes {
		f.Seek(-tailBytes, io.SeekEnd)
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimRight(text, "\n"), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}

func status(err error) string {
	if err != nil {
		return "FAILED"
	}
	return "ok"
}

func minutes(d time.Duration) string {
	return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
}

func groupName(group int) string {
	switch group {
	case groupAlways:
		return "always"
	case groupInstall:
		return "install"
	}
	return fmt.Sprint(group)
}
