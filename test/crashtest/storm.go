//go:build shoalcrash

package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A storm runs many workers under mixed load and kills them at random times. The root process of
// the domain replaces them and keeps a ledger of every message outside of the domain.
type storm struct {
	mu      sync.Mutex
	d       *arena.Domain
	rings   []*arena.Ring
	held    []arena.Handle
	args    []uint64
	rand    *rand.Rand
	ledger  *ledger
	next    uint64 // number of the next worker
	violate []string
	files   int // descriptors at rest
	seen    tally
	deaths  []death
}

// A death is a killed worker, recorded to explain violations.
type death struct {
	pid int
	at  time.Time
}

// latest describes the deaths of the last seconds, or returns "".
func (s *storm) latest() (said string) {
	for _, d := range s.deaths {
		if ago := time.Since(d.at); ago < 2*patience {
			said += fmt.Sprintf(" %d %v ago", d.pid, ago.Round(time.Millisecond))
		}
	}
	return said
}

// A tally counts the events of a storm and the violations. A worker counts as killed or stopped if
// it had begun its work, and as early if it was killed before.
type tally struct{ Kills, Stops, Early, Hangs, Crashes, Lost, Twice, Blocks, Bytes, FDs int }

const (
	stormWorkers = 6
	stormRings   = 3
)

// stormMain implements make storm. arg has its flags. It prints the counts of the storm as JSON,
// and returns an error if there was a violation.
func stormMain(arg string) error {
	fs := flag.NewFlagSet("storm", flag.ContinueOnError)
	kills := fs.Int("kills", 1000, "number of workers to kill")
	seed := fs.Uint64("seed", 1, "of the random choices")
	if err := fs.Parse(strings.Fields(arg)); err != nil {
		return err
	}
	signal.Ignore(syscall.SIGPIPE)
	s, took, err := newStorm(*seed, *kills)
	if err != nil {
		return err
	}
	return s.judge(*kills, took)
}

// newStorm runs a storm with a number of deaths in a new domain and returns it with its
// duration. The caller must call judge.
func newStorm(seed uint64, kills int) (*storm, time.Duration, error) {
	s := &storm{rand: rand.New(rand.NewPCG(seed, 0)), ledger: newLedger()}
	if err := s.open(); err != nil {
		return nil, 0, err
	}
	var err error
	if s.files, err = s.warmUp(); err != nil {
		return nil, 0, err
	}
	s.seen = tally{} // without the warm-up
	begin := time.Now()
	err = s.blow(kills)
	return s, time.Since(begin), err
}

func (s *storm) open() (err error) {
	if s.d, err = arena.New(arena.Options{Budget: 256 << 20, Reserve: 64 << 30}); err != nil {
		return err
	}
	for i := range stormRings {
		r, a, b, err := s.d.NewRing(arena.RingOptions{Capacity: 16 << (4 * i), Grow: i == 2})
		if err != nil {
			return err
		}
		s.rings = append(s.rings, r)
		s.held = append(s.held, r.Handle(), a, b)
		s.args = append(s.args, uint64(r.Handle()))
	}
	h, err := s.d.Alloc(1 << 20) // every worker imports it
	s.held = append(s.held, h)
	s.args = append(s.args, uint64(h))
	return err
}

// A stormer is a live worker, as the root process of a storm sees it.
type stormer struct {
	*child
	said chan struct{} // closed when all of its records are in the ledger
	work atomic.Int64  // number of records
}

// ended reports whether all of the worker's records are in the ledger.
func (w *stormer) ended() bool {
	select {
	case <-w.said:
		return true
	default:
		return false
	}
}

func (s *storm) spawn() (*stormer, error) {
	s.next++
	c, up, err := start("worker", workerSpec{Number: s.next, Args: s.args}, s.d.Files()...)
	if err != nil {
		return nil, err
	}
	w := &stormer{child: c, said: make(chan struct{})}
	go func() { defer close(w.said); s.readRecords(w, up) }()
	return w, nil
}

// readRecords enters a worker's records, which arrive on up, into the ledger until the worker is
// dead, and closes up. The caller must close w.said after that.
func (s *storm) readRecords(w *stormer, up *os.File) {
	defer up.Close()
	r := bufio.NewReaderSize(up, 64<<10)
	reading := 0
	for {
		var rec [9]byte
		if _, err := io.ReadFull(r, rec[:]); err != nil {
			break // a partial record does not count
		}
		w.work.Add(1)
		id := binary.LittleEndian.Uint64(rec[1:])
		switch rec[0] {
		case saysTake:
			reading = int(id)
		case saysGot:
			reading--
		case saysNone:
			reading = 0
		}
		s.mu.Lock()
		s.ledger.enter(rec[0], id)
		s.mu.Unlock()
	}
	s.mu.Lock()
	s.ledger.read += max(reading, 0)
	s.mu.Unlock()
}

// blow kills and replaces workers until kills of them have died. Then it kills the others, after
// a check that they still make progress.
func (s *storm) blow(kills int) error {
	var workers [stormWorkers]*stormer
	var err error
	for n := 0; n < kills; n++ {
		i := s.rand.IntN(len(workers))
		if workers[i] != nil {
			s.kill(workers[i])
		} else {
			n--
		}
		if workers[i], err = s.spawn(); err != nil {
			return err
		}
		if w := workers[s.rand.IntN(len(workers))]; w != nil {
			s.stop(w)
		}
		if s.rand.IntN(4) == 0 { // killed at its start
			w, err := s.spawn()
			if err != nil {
				return err
			}
			time.Sleep(time.Duration(s.rand.IntN(6000)) * time.Microsecond)
			s.kill(w)
		}
		time.Sleep(time.Duration(s.rand.IntN(4000)) * time.Microsecond)
		if n > 0 && n%200 == 0 {
			fmt.Fprintf(os.Stderr, "\rkills %d of %d, messages %d ", n, kills, s.messages())
		}
	}
	fmt.Fprintln(os.Stderr)
	for _, w := range workers {
		if w != nil {
			s.goesOn(w)
			s.kill(w)
		}
	}
	return nil
}

// goesOn records a violation unless a worker still makes progress after the deaths around it.
func (s *storm) goesOn(w *stormer) {
	was := w.work.Load()
	for end := time.Now().Add(patience); w.work.Load() == was; time.Sleep(time.Millisecond) {
		if w.ended() {
			return // by itself; kill counts it
		}
		if time.Now().After(end) {
			s.seen.Hangs++
			s.violate = append(s.violate, fmt.Sprintf("worker %d hangs; the dead:%s", w.cmd.Process.Pid, s.latest()))
			w.cmd.Process.Signal(syscall.SIGQUIT) // prints its goroutines on stderr
			return
		}
	}
}

// stop stops a worker at an arbitrary point. It returns at once; the worker continues within 3
// ms.
func (s *storm) stop(w *stormer) {
	begun, p := w.work.Load() > 0, w.cmd.Process
	p.Signal(syscall.SIGSTOP)
	wake := time.Duration(s.rand.IntN(3000)) * time.Microsecond
	time.AfterFunc(wake, func() {
		stopped := sys.Stopped(p.Pid)
		if p.Signal(syscall.SIGCONT) == nil && stopped && begun {
			s.mu.Lock()
			s.seen.Stops++
			s.mu.Unlock()
		}
	})
}

func (s *storm) kill(w *stormer) {
	begun := w.work.Load() > 0
	w.cmd.Process.Kill()
	<-w.said
	died := w.waitKilled()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deaths = append(s.deaths, death{w.cmd.Process.Pid, time.Now()})
	switch {
	case !died:
		s.seen.Crashes++
		s.violate = append(s.violate, fmt.Sprintf("worker %d ended by itself: %v; the dead:%s", w.cmd.Process.Pid,
			w.cmd.ProcessState, s.latest()))
	case begun:
		s.seen.Kills++
	default:
		s.seen.Early++
	}
}

func (s *storm) messages() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.messages
}

// judge drains the rings, releases everything and prints the counts of a storm that took the
// given time. It returns an error if there was a violation.
func (s *storm) judge(kills int, took time.Duration) error {
	left := s.awaitRelease()
	for _, r := range s.rings {
		var m arena.Message
		for r.TryGet(&m) == nil {
			id, err := verifyMessage(s.d, &m)
			if err != nil {
				s.violate = append(s.violate, err.Error())
			}
			s.ledger.enter(saysGot, id)
			m.Discard()
		}
		r.Close()
	}
	err := release(s.d, s.held...)
	for _, n := range s.d.Names() {
		err = errors.Join(err, s.d.Unlink(n))
	}
	if err != nil {
		s.violate = append(s.violate, err.Error())
	}
	s.violate = append(s.violate, settled(s.d)...)
	duplicates, lost := s.ledger.compare(&s.violate)
	s.d.PunchIdle()
	s.violate = append(s.violate, settled(s.d)...)
	st := s.d.Stats()
	files, _ := sys.OpenFiles(os.Getpid())
	for i := 0; i < 100 && files > s.files; i++ { // the watch may be about to close its pidfd
		time.Sleep(time.Millisecond)
		files, _ = sys.OpenFiles(os.Getpid())
	}
	corrupt := 0
	for _, v := range s.violate {
		fmt.Fprintln(os.Stderr, "violation:", v)
		if strings.Contains(v, "corrupt") {
			corrupt++
		}
	}
	s.seen.Hangs += left // seats that are never reclaimed
	s.seen.Twice, s.seen.Lost = duplicates, max(0, lost-s.ledger.read)
	s.seen.Blocks, s.seen.Bytes, s.seen.FDs = int(st.Blocks), int(st.Bytes), max(0, files-s.files)
	out, _ := json.Marshal(map[string]any{
		"kills": s.seen.Kills, "stops": s.seen.Stops, "births": s.seen.Early,
		"recovered": kills - left, "reaped": st.Reaped, "messages": s.ledger.messages,
		"hangs": s.seen.Hangs, "crashes": s.seen.Crashes, "lost_unexplained": s.seen.Lost,
		"leaked_bytes": s.seen.Bytes, "leaked_blocks": s.seen.Blocks, "leaked_fds": s.seen.FDs,
		"duplicates": duplicates, "corrupt": corrupt, "lost": lost,
		"dropped": st.Dropped, "violations": s.violate[:min(len(s.violate), 3)], "seconds": took.Seconds(),
	})
	fmt.Printf("%s\n", out)
	if len(s.violate) > 0 || st.Blocks != 0 || files > s.files {
		return fmt.Errorf("%d violations", len(s.violate))
	}
	return nil
}

// warmUp starts and kills one worker, and returns the number of open descriptors after that.
func (s *storm) warmUp() (int, error) {
	w, err := s.spawn()
	if err != nil {
		return 0, err
	}
	s.kill(w)
	s.awaitRelease()
	time.Sleep(10 * time.Millisecond)
	return sys.OpenFiles(os.Getpid())
}

// awaitRelease reaps until every worker's seat is free, but no longer than patience, and returns
// the number of seats that are not free.
func (s *storm) awaitRelease() (left int) {
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		s.d.Reap()
		left = 0
		for i := range 256 {
			if i != s.d.Seat() && !s.d.SeatFree(i) {
				left++
			}
		}
		if left == 0 || time.Now().After(end) {
			return left
		}
	}
}
