//go:build shoalcrash

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/arena/word"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A trial tells a [bench] to kill one process that executes a scenario at a point, and
// optionally its reaper as well. Without a Site the process performs its whole part, and its
// writes are recorded.
type trial struct {
	Scenario string
	Site     string `json:",omitempty"`
	Phase    string `json:",omitempty"`
	Nth      int    `json:",omitempty"`
	Second   *point `json:",omitempty"` // where the reaper dies; no site: record its writes
	Auto     bool   // wait for the watch instead of calling Reap
	Stop     string `json:",omitempty"` // stop there instead; then goesOn or dies
}

type point struct {
	Site, Phase string
	Nth         int
}

// A verdict is the result of a trial. Wrong describes each violation; it is empty if there is
// none. Hits counts the recorded writes by point.
type verdict struct {
	Killed       bool
	SecondKilled bool
	Stopped      bool
	Kills        int
	Hits         map[string]int
	SecondHits   map[string]int
	Wrong        []string
}

// A bench is a process with its own domain that survives all of its trials, one after another.
// The processes that run the scenarios join its domain.
type bench struct {
	d     *arena.Domain
	sites []site
	files int
}

// mutant is set if a branch of this bench's reaper is disabled. Timeouts are then short, because a
// hang is an expected result.
var mutant = os.Getenv("SHOAL_DISABLE") != ""

const budget = 64 << 20

// benchMain is the main function of a bench process. It reads trials from standard input, one
// JSON object per line, and writes a verdict for each. It returns nil at the end of the input.
// arg is a list of [site] in JSON.
func benchMain(arg string) error {
	b := &bench{}
	if err := json.Unmarshal([]byte(arg), &b.sites); err != nil {
		return err
	}
	word.DisableBranch(os.Getenv("SHOAL_DISABLE"))
	d, err := arena.New(arena.Options{Budget: budget, Reserve: 16 << 30})
	if err != nil {
		return err
	}
	b.d = d
	arena.SetDefault(d)
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return nil
		}
		var t trial
		if err := json.Unmarshal(line, &t); err != nil {
			return err
		}
		v, _ := json.Marshal(b.run(t))
		fmt.Printf("%s\n", v)
	}
}

// run kills the victim of the scenario, reclaims its resources, audits the domain, and then,
// unless there is a violation, runs the scenario once more without a death. If all this takes
// too long, run ends the process with code 4. The violations are in the verdict, which is never
// nil.
func (b *bench) run(t trial) *verdict {
	v := &verdict{}
	watchdog := time.AfterFunc(3*patience, func() {
		buf := make([]byte, 1<<20)
		fmt.Fprintf(os.Stderr, "hangs: %+v second %+v\n%s", t, t.Second, buf[:runtime.Stack(buf, true)])
		os.Exit(4)
	})
	defer watchdog.Stop()
	b.round(t, v)
	if t.Site != "" && len(v.Wrong) == 0 {
		again := &verdict{}
		b.round(trial{Scenario: t.Scenario, Auto: t.Auto}, again)
		for _, w := range again.Wrong {
			v.Wrong = append(v.Wrong, "a fresh participant: "+w)
		}
		v.Kills += again.Kills
	}
	return v
}

func (b *bench) round(t trial, v *verdict) {
	sc := scenarios[t.Scenario]
	w := &world{b: b, d: b.d, sc: sc, sent: make(map[uint64]bool), maybe: make(map[uint64]bool),
		got: make(map[uint64]int)}
	defer func() { v.Wrong = append(v.Wrong, w.wrong...) }()
	if sc.setup != nil {
		if err := sc.setup(w); err != nil {
			w.addProblem("set up: %v", err)
		}
	}
	word.HoldReaper(t.Second != nil)
	s := spec{Scenario: t.Scenario, Site: t.Site, Phase: t.Phase, Nth: t.Nth, Record: t.Site == "",
		Pause: sc.contend != nil && t.Site != "", Halt: t.Stop != "", Args: w.args}
	w.halt = t.Stop
	if sc.stop[0] != "" {
		s.Stop = b.find(sc.stop[0], sc.stop[1])
	}
	v.Hits, v.Killed = w.follow(s)
	v.Kills++
	v.Stopped = w.stopped
	if t.Second != nil {
		s := spec{Scenario: t.Scenario, Reap: true, Site: t.Second.Site, Phase: t.Second.Phase,
			Nth: t.Second.Nth, Record: t.Second.Site == ""}
		v.SecondHits, v.SecondKilled = w.follow(s)
		v.Kills++
		word.HoldReaper(false)
	}
	b.d.Reap() // the holder does not reap, and may wait for the victim's leftovers
	w.resume()
	b.reaped(t.Auto && t.Second == nil && !sc.early, w)
	w.wrong = append(w.wrong, b.d.StrayBits()...) // before the rings and their bits are freed
	w.finish()
	b.audit(w)
}

// limit returns the time limit for events that should happen at once. It is shorter in a bench
// with a disabled branch of the reaper, because some of them may never happen there.
func limit() time.Duration {
	if mutant {
		return patience / 20
	}
	return patience / 2
}

// reaped waits until all seats other than the bench's own are free, and records a problem if
// they are not by the limit. If auto is true, it only waits for the domain's own watch, and
// otherwise it calls Reap.
func (b *bench) reaped(auto bool, w *world) {
	for end := time.Now().Add(limit()); ; {
		if !auto {
			if _, err := b.d.Reap(); err != nil {
				w.addProblem("reap: %v", err)
			}
		}
		busy := 0
		for s := range 256 {
			if s != b.d.Seat() && !b.d.SeatFree(s) {
				busy++
			}
		}
		if busy == 0 {
			if !auto {
				b.d.Reap()
			}
			return
		}
		if time.Now().After(end) {
			w.addProblem("%d seats are not free again", busy)
			return
		}
		time.Sleep(20 * time.Microsecond)
	}
}

func (b *bench) audit(w *world) {
	w.wrong = append(w.wrong, settled(b.d)...)
	if s := b.d.Stats(); s.Blocks != 0 || s.InTransit != 0 {
		w.addProblem("%d blocks and %d references are left", s.Blocks, s.InTransit)
	}
	if len(w.wrong) == 0 {
		b.d.PunchIdle()
		w.wrong = append(w.wrong, settled(b.d)...)
	}
	if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != syscall.ECHILD {
		w.addProblem("a child is left: pid %d, %v", pid, err)
	}
	b.countFiles(w)
}

// settled audits the domain and returns the violations. It repeats the audit until there is none
// or the limit has passed, in case a reap is still running.
func settled(d *arena.Domain) (wrong []string) {
	for end := time.Now().Add(limit()); ; time.Sleep(time.Millisecond) {
		if wrong = d.Autopsy(); len(wrong) == 0 || time.Now().After(end) {
			return wrong
		}
	}
}

// countFiles compares the number of open descriptors with the smallest one seen, and records a
// problem in w if there are more. It retries, because the watch may close its pidfd a moment
// later.
func (b *bench) countFiles(w *world) {
	n := 0
	for range 200 {
		n, _ = sys.OpenFiles(os.Getpid())
		if b.files == 0 || n <= b.files {
			b.files = n
			return
		}
		time.Sleep(time.Millisecond)
	}
	w.addProblem("%d descriptors are open, there were %d", n, b.files)
}

// A world is the state in one round of the survivor, the bench's side of a scenario. A
// scenario's functions record violations in it.
type world struct {
	b      *bench
	d      *arena.Domain
	sc     *scenario
	args   []uint64
	held   []arena.Handle
	rings  []*arena.Ring
	syncs  []*arena.Sync
	flow   int // index of the ring with counted messages
	holder *child
	jobs   []chan struct{}
	sent   map[uint64]bool // must arrive
	maybe  map[uint64]bool // may arrive: their put had begun
	got    map[uint64]int
	drops  int         // messages that may be missing
	over   atomic.Bool // the victim is dead
	wrong  []string

	halt    string // what happens to a stopped victim
	stopped bool   // it was stopped
}

func (w *world) addProblem(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// follow starts a child, runs its scenario and records its reports until it is dead. It returns
// the recorded writes, and whether the child died before the end of its part.
func (w *world) follow(s spec) (hits map[string]int, killed bool) {
	c, err := spawn("victim", s, w.d.Files()...)
	if err != nil {
		w.addProblem("spawn: %v", err)
		return nil, false
	}
	done := false
	for line := c.next(); line != ""; line = c.next() {
		kind, rest, _ := strings.Cut(line, " ")
		switch kind {
		case "R":
			if w.sc.ready != nil && !s.Reap {
				w.sc.ready(w)
			}
			c.tell()
		case "K":
			killed = true
			w.sc.contend(w)
			c.cmd.Process.Kill()
		case "Z":
			w.beside(c)
		case "S":
			w.sc.stopped(w)
			c.tell()
		case "H":
			json.Unmarshal([]byte(rest), &hits)
		case "D":
			done = true
		case "E":
			w.addProblem("victim: %s", rest)
		default:
			w.note(kind, rest)
		}
	}
	w.over.Store(true)
	if !c.waitKilled() {
		w.addProblem("victim ended by itself: %v", c.cmd.ProcessState)
	}
	return hits, killed || !done
}

func (w *world) note(kind, rest string) {
	id, _ := strconv.ParseUint(rest, 10, 64)
	switch kind {
	case "B":
		w.maybe[id] = true
	case "P":
		w.sent[id] = true
	case "G":
		w.got[id]++
	}
}

// hold starts a process, the holder, that runs a scenario and stops at the first call of method
// in function fn, in the given phase of the write, while its stamp is set. [world.resume]
// continues it.
func (w *world) hold(scenario, fn, method, phase string) error {
	return w.freeze(scenario, w.b.find(fn, method), phase, 1, w.args)
}

func (w *world) freeze(scenario, at, phase string, nth int, args []uint64) error {
	c, err := spawn("victim", spec{Scenario: scenario, Site: at, Phase: phase, Nth: nth, Pause: true,
		Idle: true, Args: args}, w.d.Files()...)
	if err != nil {
		return err
	}
	w.holder = c
	for line := c.next(); line != ""; line = c.next() {
		switch kind, rest, _ := strings.Cut(line, " "); kind {
		case "R":
			c.tell()
		case "K":
			return nil
		case "D", "E":
			return fmt.Errorf("holder did not reach %s: %s %s", at, kind, rest)
		default:
			w.note(kind, rest)
		}
	}
	return errors.New("holder died")
}

// resume lets the holder continue to its end, and records its reports. It does nothing if there
// is no holder.
func (w *world) resume() {
	c := w.holder
	if c == nil {
		return
	}
	w.holder = nil
	c.tell()
	for line := c.next(); line != ""; line = c.next() {
		kind, rest, _ := strings.Cut(line, " ")
		late := w.stopped && strings.HasSuffix(rest, context.DeadlineExceeded.Error()) // due to the stop
		if kind == "E" && !late {
			w.addProblem("holder: %s", rest)
		}
		w.note(kind, rest)
	}
	c.waitKilled()
}

// kill lets a child die at the first call of method in function fn of a scenario, in the given
// phase of the write, and waits until it is reaped. It is for the setup of a scenario.
func (w *world) kill(scenario, fn, method, phase string) error {
	err := w.leaveDead(scenario, fn, method, phase)
	if err == nil {
		w.b.reaped(false, w)
	}
	return err
}

// leaveDead is like [world.kill], but does not wait for a reaper.
func (w *world) leaveDead(scenario, fn, method, phase string) error {
	old := w.sc
	defer w.over.Store(false)
	w.sc = scenarios[scenario]
	_, killed := w.follow(spec{Scenario: scenario, Site: w.b.find(fn, method), Phase: phase, Nth: 1, Args: w.args})
	w.sc = old
	if !killed {
		return fmt.Errorf("nobody died in %s", fn)
	}
	return nil
}

// find returns the position of the first call of method in function fn, as "file.go:line". It
// panics if there is none.
func (b *bench) find(fn, method string) string {
	for _, s := range b.sites {
		if s.Func == fn && s.Method == method {
			return s.At
		}
	}
	panic("crashtest: there is no " + method + " in " + fn)
}

// ring creates a ring that the bench holds, with both ends, until the end of the round, and
// passes its handle to the victim.
func (w *world) ring(opts arena.RingOptions) (*arena.Ring, error) {
	r, s, v, err := w.d.NewRing(opts)
	if err != nil {
		return nil, err
	}
	w.rings = append(w.rings, r)
	w.held = append(w.held, r.Handle(), s, v)
	w.args = append(w.args, uint64(r.Handle()))
	return r, nil
}

// put puts message id, with n blocks of size bytes and a body of about long bytes, without
// waiting. The message must arrive.
func (w *world) put(r *arena.Ring, id uint64, n, size, long int) error {
	hs, err := blocks(w.d, id, n, size)
	if err != nil {
		return err
	}
	w.sent[id] = true
	return r.TryPut(body(id, n, long), hs, true)
}

// startJob runs f on a goroutine, concurrently with the victim. [world.finish] waits for it.
func (w *world) startJob(f func()) {
	c := make(chan struct{})
	w.jobs = append(w.jobs, c)
	go func() { defer close(c); f() }()
}

func (w *world) wait() {
	for _, c := range w.jobs {
		select {
		case <-c:
		case <-time.After(limit()):
			w.addProblem("a survivor is stuck")
			if w.unstick() {
				<-c
			}
		}
	}
}

// unstick ends the waits on the rings by finishing them. It returns false if there are no rings.
func (w *world) unstick() bool {
	for _, r := range w.rings {
		r.Finish()
	}
	return len(w.rings) > 0
}

// take verifies and counts a message that arrived, and then discards it. It records a problem if
// the message is corrupt.
func (w *world) take(m *arena.Message) {
	defer m.Discard()
	if len(m.Body) == 0 {
		return // carries only a block
	}
	id, err := verifyMessage(w.d, m)
	if err != nil {
		w.addProblem("%v", err)
	}
	w.got[id]++
}

// finish ends the round: it drains the rings, compares the messages that arrived with those that
// were put, and releases everything.
func (w *world) finish() {
	if w.sc.after != nil {
		w.sc.after(w)
	}
	w.wait()
	for _, r := range w.rings {
		var m arena.Message
		for {
			err := r.TryGet(&m)
			if err == nil {
				w.take(&m)
				continue
			}
			if errors.Is(err, arena.ErrCorrupt) && w.sc.corrupt {
				continue
			}
			if !errors.Is(err, arena.ErrEmpty) && !errors.Is(err, arena.ErrFinished) {
				w.addProblem("get: %v", err)
			}
			break
		}
	}
	w.compare()
	for _, r := range w.rings {
		r.Close()
	}
	for _, s := range w.syncs {
		s.Close()
	}
	if err := release(w.d, w.held...); err != nil {
		w.addProblem("release: %v", err)
	}
}

func (w *world) compare() {
	missing := 0
	for id := range w.sent {
		if w.got[id] == 0 {
			missing++
		}
	}
	if missing > w.sc.drops {
		w.addProblem("%d messages are lost", missing)
	}
	for id, n := range w.got {
		if n > 1 {
			w.addProblem("message %#x came %d times", id, n)
		}
		if !w.sent[id] && !w.maybe[id] {
			w.addProblem("message %#x was never sent", id)
		}
	}
}

var background = context.Background()
