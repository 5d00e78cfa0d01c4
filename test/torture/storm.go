//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A stormKind is a kind of storm. runStorm starts the processes, kills them and checks the result;
// it runs once without deaths before that.
type stormKind struct {
	name   string
	deaths int  // default number of deaths
	full   bool // run only once, if there is enough time
	blow   func(*storm) error
}

var storms = []stormKind{
	{"locks", 200, false, lockStorm},
	{"pools", 150, false, poolStorm},
	{"managers", 100, false, managerStorm},
	{"ranks", 60, false, rankStorm},
	{"loaders", 80, false, loaderStorm},
	{"devices", 40, false, deviceStorm},
	{"python", 4, false, pythonStorm},
	{"turnover", 400, true, turnoverStorm},
	{"million", 1, true, millionStorm},
}

func stormNames() (names []string) {
	for _, s := range storms {
		names = append(names, s.name)
	}
	return names
}

// A storm kills and stops processes of a program at random and checks the state afterwards.
type storm struct {
	kind   stormKind
	ctx    context.Context // done if the storm hangs
	seed   uint64
	dir    string
	book   *ledger
	path   string // of the ledger
	deaths int    // 0 during the warm-up
	spares bool   // always leave a process alive that has begun its work
	pace   int    // required entries between two kills, so that retries can succeed
	kept   int    // descriptors that a run may leave open
	// patience is the time limit for survivors after the last death. It far exceeds the time that
	// they should need.
	patience time.Duration

	mu      sync.Mutex
	rand    *rand.Rand
	seen    tally
	dead    map[int]bool
	violate []string
}

// runStorm runs the storm with this name and prints its tally. deaths is 0 for the usual number. It
// returns an error if there is a violation or no such storm.
func runStorm(ctx context.Context, name string, deaths int, seed uint64) error {
	i := slices.Index(stormNames(), name)
	if i < 0 {
		return fmt.Errorf("storm %q: there are %q", name, stormNames())
	}
	if deaths == 0 {
		deaths = storms[i].deaths
	}
	s, err := storms[i].begin(deaths, seed, time.Minute)
	if err != nil {
		return err
	}
	return errors.Join(s.runTwice(ctx), s.report())
}

func (k stormKind) begin(deaths int, seed uint64, patience time.Duration) (*storm, error) {
	dir, err := os.MkdirTemp("", "shoal-torture-")
	return &storm{kind: k, seed: seed, dir: dir, path: filepath.Join(dir, "ledger"), deaths: deaths,
		rand: rand.New(rand.NewPCG(seed, 0)), dead: make(map[int]bool), patience: patience}, err
}

// runTwice runs the storm twice. The first run has no deaths; afterwards, this process has opened
// the descriptors that it keeps. Violations are recorded; the error is one of the ledger. runTwice
// removes the storm's directory. A storm that hangs ends the process.
func (s *storm) runTwice(ctx context.Context) error {
	defer os.RemoveAll(s.dir)
	defer closePen(s.path)
	limit := 4*s.patience + time.Duration(s.deaths)*time.Second
	var cancel context.CancelFunc
	s.ctx, cancel = context.WithTimeout(ctx, limit)
	defer cancel()
	defer time.AfterFunc(limit+s.patience, s.hangs).Stop()
	files, atRest := filesLeft(), 0
	for _, s.deaths = range []int{0, s.deaths} {
		var err error
		if s.book, err = newLedger(s.path); err != nil {
			return err
		}
		if _, err := openPen(s.path); err != nil {
			return err
		}
		if err := s.kind.blow(s); err != nil {
			s.wrong(&s.seen.Crashes, 1, "%v", err)
		}
		s.settle(&atRest)
		atRest += s.kept
		s.book.f.Close()
	}
	s.seen.Files += max(0, len(filesLeft())-len(files))
	return nil
}

func (s *storm) report() error {
	line, err := json.Marshal(s.seen)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", line)
	if len(s.violate) == 0 && s.seen.wrong() == 0 {
		return nil
	}
	for _, v := range s.violate[:min(len(s.violate), 20)] {
		fmt.Fprintf(os.Stderr, "storm %s of seed %d: %s\n", s.kind.name, s.seed, v)
	}
	return fmt.Errorf("storm %s of seed %d: %d violations: %s", s.kind.name, s.seed, len(s.violate), line)
}

// hangs ends a storm that does not end by itself: it prints all goroutines and exits the process
// with code 1.
func (s *storm) hangs() {
	for _, p := range shoal.ActiveChildren() {
		p.Signal(syscall.SIGQUIT) // prints its goroutines on stderr
	}
	pprof.Lookup("goroutine").WriteTo(os.Stderr, 2)
	s.wrong(&s.seen.Hangs, 1, "it does not end")
	s.report()
	os.Exit(1)
}

// wrong records a violation and adds n to *count, a field of s.seen. Several goroutines may call
// it.
func (s *storm) wrong(count *int, n int, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*count += n
	s.violate = append(s.violate, fmt.Sprintf(format, args...))
}

// settle waits until everything that the dead processes held is free, and counts leaks as
// violations. *atRest is the number of descriptors that may be open; if it is 0, settle sets it.
func (s *storm) settle(atRest *int) {
	d, err := arena.Default()
	if err != nil {
		s.wrong(&s.seen.Crashes, 1, "%v", err)
		return
	}
	var st arena.Stats
	s.eventually(func() bool {
		d.Reap()
		st = d.Stats()
		return st.Blocks == 0 && st.Bytes == 0
	})
	if st.Blocks != 0 || st.Bytes != 0 {
		s.wrong(&s.seen.Blocks, int(st.Blocks), "%d blocks are left", st.Blocks)
		s.wrong(&s.seen.Bytes, int(st.Bytes), "%d bytes are left: this process has %v of them", st.Bytes, d.Holdings())
	}
	files := 0
	s.eventually(func() bool {
		files, err = sys.OpenFiles(os.Getpid())
		return *atRest == 0 || files <= *atRest // a pidfd or pipe may be closed a moment later
	})
	if *atRest == 0 {
		*atRest = files
	}
	if err != nil || files > *atRest {
		s.wrong(&s.seen.FDs, files-*atRest, "%d descriptors, and %d before, %v: %v", files, *atRest, err, fdTargets())
	}
}

// fdTargets returns the link targets of this process's descriptors.
func fdTargets() (all []string) {
	names, _ := filepath.Glob("/proc/self/fd/*")
	for _, n := range names {
		if to, err := os.Readlink(n); err == nil {
			all = append(all, to)
		}
	}
	return all
}

// eventually waits until f returns true, and calls it repeatedly. It returns false if f has not
// returned true after half of the patience.
func (s *storm) eventually(f func() bool) bool {
	for end := time.Now().Add(s.patience / 2); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// timeoutContext returns a context that ends after the patience, for events that must happen
// soon. The caller must call the returned function.
func (s *storm) timeoutContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.ctx, s.patience)
}

func (s *storm) intn(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rand.IntN(n)
}

// prey is a process that may be killed.
type prey interface {
	PID() int
	Signal(os.Signal) error
}

// hunt kills and stops processes until the intended number has died. The processes with the PIDs
// in spare are not touched.
func (s *storm) hunt(spare ...int) {
	for n := 0; n < s.deaths && s.ctx.Err() == nil; {
		all := slices.DeleteFunc(shoal.ActiveChildren(), func(p *shoal.Process) bool {
			return slices.Contains(spare, p.PID()) || s.isDead(p.PID())
		})
		if len(all) > 0 {
			p := all[s.intn(len(all))]
			others := !s.spares || slices.ContainsFunc(all, func(q *shoal.Process) bool {
				return q != p && s.book.knows(q.PID())
			})
			if others && s.intn(3) == 0 {
				s.kill(p)
				n++
				s.goOn()
			} else {
				s.stop(p)
			}
		}
		time.Sleep(time.Duration(s.intn(6000)) * time.Microsecond)
	}
}

// goOn waits until the ledger has as many new entries as pace requires, but not longer than half
// of the patience.
func (s *storm) goOn() {
	if s.pace > 0 {
		was := len(s.book.readEntries())
		s.eventually(func() bool { return len(s.book.readEntries()) >= was+s.pace })
	}
}

// kill kills a process at an arbitrary point and counts it. One in eight is stopped before.
func (s *storm) kill(p prey) {
	pid := p.PID()
	s.mu.Lock()
	s.dead[pid] = true
	s.mu.Unlock()
	if s.intn(8) == 0 {
		p.Signal(syscall.SIGSTOP)
		time.Sleep(time.Duration(s.intn(5000)) * time.Microsecond)
	}
	if f, err := openPen(s.path); err == nil {
		f.write(kills, uint64(pid))
	}
	began := s.book.knows(pid)
	if p.Signal(os.Kill) != nil {
		return // it has exited by itself
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if began {
		s.seen.Kills++
	} else {
		s.seen.Early++
	}
}

// stop stops a process at an arbitrary point. It returns at once; the process continues within 5
// ms.
func (s *storm) stop(p prey) {
	began := s.book.knows(p.PID())
	if p.Signal(syscall.SIGSTOP) != nil {
		return
	}
	time.AfterFunc(time.Duration(s.intn(5000))*time.Microsecond, func() {
		stopped := sys.Stopped(p.PID())
		if p.Signal(syscall.SIGCONT) == nil && stopped && began {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.seen.Stops++
		}
	})
}

func (s *storm) isDead(pid int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dead[pid]
}

// explained reports whether err is the death of a process that this storm has killed.
func (s *storm) explained(err error) bool {
	if e, ok := errors.AsType[*shoal.ProcessError](err); ok {
		return s.isDead(e.PID) && e.Signal == os.Kill
	}
	e, ok := errors.AsType[*arena.PeerError](err)
	return ok && s.isDead(e.PID)
}

// keep runs n processes, started by start, and replaces those that die, until the hunt is over.
// Then it stops them and checks how they ended. Each process gets another number. spare is as
// for [storm.hunt].
func (s *storm) keep(n int, start func(g *shoal.Group, number uint64) *shoal.Process, spare ...int) {
	var workers sync.WaitGroup
	over := make(chan struct{})
	var number uint64
	for range n {
		workers.Go(func() {
			for {
				s.mu.Lock()
				number++
				mine := number
				s.mu.Unlock()
				o := shoal.Options{Workers: n, Grace: s.patience / 2}
				if s.intn(4) == 0 {
					o.Start = shoal.WarmStart
				}
				ctx, cancel := context.WithCancel(s.ctx)
				g := shoal.NewGroup(ctx, o)
				p := start(g, mine)
				select {
				case <-p.Done():
				case <-over:
				}
				cancel()
				g.Wait()
				s.ended(p)
				select {
				case <-over:
					return
				default:
				}
			}
		})
	}
	if s.deaths == 0 {
		s.eventually(func() bool { return len(s.book.readEntries()) > 100 })
	}
	s.hunt(spare...)
	s.progress()
	close(over)
	workers.Wait()
	if err := shoal.Warm(s.ctx, 0, shoal.Options{Workers: n}); err != nil {
		s.wrong(&s.seen.Crashes, 1, "%v", err)
	}
}

// ended waits for the exit of a process and checks it: the process must have been killed by the
// storm or stopped as requested. Otherwise it records a violation.
func (s *storm) ended(p *shoal.Process) {
	err := p.Wait(s.ctx)
	if err == nil || s.explained(err) {
		return
	}
	if e, ok := errors.AsType[*shoal.ProcessError](err); ok && e.Signal != nil {
		s.wrong(&s.seen.Hangs, 1, "a process had to be ended: %v", err)
	} else if !errors.Is(err, context.Canceled) {
		s.wrong(&s.seen.Crashes, 1, "a process ended by itself: %v", err)
	}
}

// progress records a violation unless the survivors still make progress after all deaths.
func (s *storm) progress() {
	was := len(s.book.readEntries())
	if !s.eventually(func() bool { return len(s.book.readEntries()) > was+20 }) {
		s.wrong(&s.seen.Hangs, 1, "nobody gets on after the last death")
	}
}
