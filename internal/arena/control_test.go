//go:build shoalcrash

package arena

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/park"
	"github.com/shoal-mp/shoal/internal/arena/word"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A stage is the heap domain in which a scenario is played again and again, in the same memory, so
// that a word has the same address each time.
type stage struct {
	*heap
	woken [word.MaxParticipants][]park.Topic // pending at its doorbells

	first [layout.PageSize]byte // a new domain's header

	uses   []use
	grown  bool // a word has become contended since it was last asked
	ctlEnd int
}

// A use says which actors have read and written a word, and whether a decision is taken before an
// access to it: only where one actor writes what another one reads or writes do they notice who
// came first.
type use struct {
	readers, writers uint32
	contended        bool
}

const (
	stageBytes  = 1 << 20
	stageBlocks = layout.CommitStep / layout.BlockSize
)

func newStage() *stage {
	s := &stage{heap: newHeap(stageBytes, stageBlocks)}
	s.ctlEnd = len(s.ctl) / 8
	s.uses = make([]use, s.ctlEnd+len(s.mem)/8)
	d, err := layOut(s, stageBytes)
	testutil.MustNoError(err)
	d.mem.Header.Quota.Store(0) // no participant spins
	copy(s.first[:], s.ctl)
	return s
}

// clear makes the memory as new.
func (s *stage) clear(participants int) {
	blocks := (*layout.Header)(unsafe.Pointer(&s.ctl[0])).Blocks.Load()
	clear(s.ctl[layout.OffBlocks : layout.OffBlocks+blocks*layout.BlockSize])
	clear(s.ctl[:layout.OffLanes+participants*layout.LaneBytes])
	copy(s.ctl, s.first[:])
	s.living = [word.MaxParticipants]chan struct{}{}
	clear(s.backed)
	s.woken = [word.MaxParticipants][]park.Topic{}
}

// forget is for another scenario, whose words are others.
func (s *stage) forget() { clear(s.uses) }

// RingBell has a queue of heapTopics topics. Further topics are missed.
func (s *stage) RingBell(seat int, _ uint64, t park.Topic) (full bool) {
	if len(s.woken[seat]) == heapTopics {
		return true
	}
	s.woken[seat] = append(s.woken[seat], t)
	return false
}

// found makes a domain with so many participants, which have no goroutines of their own.
func (s *stage) found(participants int) []*Domain {
	s.clear(participants)
	all := make([]*Domain, participants)
	for i := range all {
		all[i] = overlayStore(s)
		_, err := all[i].claimAnySeat()
		testutil.MustNoError(err)
		all[i].markLive()
	}
	return all
}

// use returns what is known of a word, or nil if it is of another domain.
func (s *stage) use(w *word.Word) *use {
	at := uintptr(unsafe.Pointer(w))
	if off := at - uintptr(unsafe.Pointer(&s.ctl[0])); off < uintptr(len(s.ctl)) {
		return &s.uses[off/8]
	}
	if off := at - uintptr(unsafe.Pointer(&s.mem[0])); off < uintptr(len(s.mem)) {
		return &s.uses[s.ctlEnd+int(off/8)]
	}
	return nil
}

// An actor is one goroutine of a scenario.
type actor struct {
	id    int
	d     *Domain
	name  string
	bell  bool          // answers the doorbell of its participant: it may stand still at the end
	turn  chan struct{} // it may go on
	ready func() bool   // not nil: it waits for this
	over  bool
	dead  bool // is to do nothing more
	wrote int
}

func (a *actor) enabled() bool { return !a.over && !a.dead && (a.ready == nil || a.ready()) }

// killed is what an actor panics with when it is to do nothing more: what it would do at its end
// does nothing either.
type killed struct{}

// A play is one schedule of a scenario: it decides who goes on.
type play struct {
	s      *stage
	actors []*actor
	now    *actor
	choose func(options int, free bool) int
	most   int // preemptions
	spent  int
	steps  int

	victim  int // of the participants, or -1
	killAt  int // before which write of its first actor
	ended   chan struct{}
	stopped bool
	wrong   []string
	trace   []string
	tracing bool
}

const mostSteps = 100_000 // of a schedule: beyond, somebody runs in a circle

func (p *play) add(d *Domain, name string, f func()) *actor {
	a := &actor{id: len(p.actors), d: d, name: name, turn: make(chan struct{}, 1)}
	p.actors = append(p.actors, a)
	go func() {
		defer p.finish(a)
		<-a.turn
		if !a.dead {
			f()
		}
	}()
	return a
}

// finish is the end of an actor, also of one that was killed.
func (p *play) finish(a *actor) {
	if e := recover(); e != nil && e != (killed{}) {
		p.blame("%s panics: %v\n%s", a.name, e, debug.Stack())
	}
	a.over = true
	if p.stopped {
		p.ended <- struct{}{}
		return
	}
	if a.d.seat == p.victim && !a.bell && !a.dead {
		p.kill()
	}
	if next := p.pick(); next != nil {
		p.now = next
		next.turn <- struct{}{}
		return
	}
	p.stop()
}

// stop ends the schedule: all have finished, or nobody can go on.
func (p *play) stop() {
	for _, a := range p.actors {
		if !a.over && !a.bell && !a.dead {
			p.blame("%s waits for ever", a.name)
		}
	}
	p.stopped = true
	p.ended <- struct{}{}
}

func (p *play) blame(format string, args ...any) {
	p.wrong = append(p.wrong, fmt.Sprintf(format, args...))
}

// kill ends the victim as a SIGKILL does.
func (p *play) kill() {
	for _, a := range p.actors {
		a.dead = a.dead || a.d.seat == p.victim
	}
	testutil.MustNoError(p.s.unlockSeat(p.victim))
	if p.tracing {
		p.trace = append(p.trace, "the victim is killed")
	}
}

// run plays the schedule and unwinds who is left.
func (p *play) run() {
	p.ended = make(chan struct{})
	c := word.Controller(p)
	word.Control.Store(&c)
	defer word.Control.Store(nil)
	p.now = p.actors[0]
	p.now.turn <- struct{}{}
	<-p.ended
	for _, a := range p.actors {
		if !a.over {
			a.dead, p.now = true, a
			a.turn <- struct{}{}
			<-p.ended
		}
	}
}

// pick returns who goes on, which costs a preemption if it is another one than who could, or nil if
// nobody can.
func (p *play) pick() *actor {
	var options [8]*actor
	n, free := 0, true
	if p.now.enabled() {
		options[0], n, free = p.now, 1, false
	}
	for _, a := range p.actors {
		if a != p.now && (free || p.spent < p.most) && a.enabled() {
			options[n] = a
			n++
		}
	}
	if n == 0 {
		return nil
	}
	at := 0
	if n > 1 {
		at = p.choose(n, free)
	}
	if !free && at != 0 {
		p.spent++
	}
	return options[at]
}

func (p *play) yield() {
	me, next := p.now, p.pick()
	if next == me {
		return
	}
	if next == nil {
		p.stop()
	} else {
		p.now = next
		next.turn <- struct{}{}
	}
	<-me.turn
	if me.dead {
		panic(killed{})
	}
}

func (p *play) Access(w *word.Word, writes bool) {
	a, u := p.now, p.s.use(w)
	if u == nil {
		return
	}
	if a.dead {
		panic(killed{})
	}
	if p.steps++; p.steps > mostSteps {
		p.blame("%s runs in a circle", a.name)
		p.stop()
		<-a.turn
		panic(killed{})
	}
	p.s.note(u, a.id, writes)
	if u.contended {
		p.yield()
	}
	if p.tracing {
		p.tell(a, u, writes)
	}
	if writes && !a.bell && a.d.seat == p.victim {
		if a.wrote++; a.wrote == p.killAt {
			p.kill()
			panic(killed{})
		}
	}
}

func (s *stage) note(u *use, id int, writes bool) {
	bit := uint32(1) << id
	if writes && u.writers&bit == 0 {
		u.writers |= bit
		s.grown = s.grown || (u.readers|u.writers)&^bit != 0
	}
	if !writes && u.readers&bit == 0 {
		u.readers |= bit
		s.grown = s.grown || u.writers&^bit != 0
	}
}

// settle takes the contended words among those that were used as those before which decisions are
// taken from now on, and reports whether there are new ones.
func (s *stage) settle() bool {
	if !s.grown {
		return false
	}
	s.grown = false
	for i := range s.uses {
		u := &s.uses[i]
		all := u.readers | u.writers
		u.contended = u.writers != 0 && all&(all-1) != 0
	}
	return true
}

// tell writes down where the actor is.
func (p *play) tell(a *actor, u *use, writes bool) {
	if !u.contended && !writes {
		return
	}
	var pcs [3]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(5, pcs[:])])
	f, _ := frames.Next()
	p.trace = append(p.trace, fmt.Sprintf("%s at %s:%d", a.name, filepath.Base(f.File), f.Line))
}

func (p *play) Block(ready func() bool) {
	me := p.now
	if me.dead {
		panic(killed{})
	}
	if ready() {
		return
	}
	me.ready = ready
	p.yield()
	me.ready = nil
}

func (p *play) Spawn(f func()) { p.add(p.now.d, p.now.name+"'s goroutine", f) }

func (p *play) Lane() int { return p.now.id }

// serve adds the goroutine that answers a participant's doorbell.
func (p *play) serve(d *Domain) {
	a := p.add(d, fmt.Sprintf("bell %d", d.seat), func() {
		p.now.ready = nil
		seen := news{d.mem.Header.Members.Load(), d.mem.Header.Pressure.Load()}
		for {
			p.Block(func() bool { return len(p.s.woken[d.seat]) > 0 })
			topics := p.s.woken[d.seat]
			p.s.woken[d.seat] = nil
			d.park.HandleBell(topics)
			seen = d.handleNews(seen)
		}
	})
	a.bell = true
	a.ready = func() bool { return len(p.s.woken[d.seat]) > 0 }
}

// A search takes every decision in every way, depth first.
type search struct {
	path []decision
	at   int
}

type decision struct{ options, taken int }

func (s *search) choose(options int, _ bool) int {
	if s.at == len(s.path) {
		s.path = append(s.path, decision{options: options})
	}
	d := s.path[s.at]
	if d.options != options {
		panic(fmt.Sprintf("decision %d has %d options, and had %d: the scenario depends on more than the schedule",
			s.at, options, d.options))
	}
	s.at++
	return d.taken
}

// next moves on to the next schedule and reports whether there is one.
func (s *search) next() bool {
	s.at = 0
	for n := len(s.path); n > 0; n = len(s.path) {
		if last := &s.path[n-1]; last.taken+1 < last.options {
			last.taken++
			return true
		}
		s.path = s.path[:n-1]
	}
	return false
}

// A finding is a schedule at whose end something is wrong.
type finding struct {
	wrong []string
	trace []string
}

func (f *finding) String() string {
	return strings.Join(f.wrong, "\n") + "\nafter\n\t" + strings.Join(f.trace, "\n\t")
}

// An explorer plays one scenario in many ways.
type explorer struct {
	stage    *stage
	scenario scenario
	most     int // preemptions
	limit    int // schedules of one search; 0 is all
	explored int
}

// play plays one schedule and returns what is wrong with it.
func (x *explorer) play(p *play) *finding {
	x.explored++
	p.s = x.stage
	all := x.stage.found(x.scenario.participants)
	end := x.scenario.begin(p, all)
	for _, d := range all {
		p.serve(d)
	}
	p.run()
	if len(p.wrong) == 0 {
		if p.victim >= 0 {
			all = append(all[:p.victim:p.victim], all[p.victim+1:]...)
		}
		if p.wrong = end(); len(p.wrong) == 0 {
			p.wrong = all[0].Autopsy()
		}
	}
	if len(p.wrong) == 0 {
		return nil
	}
	return &finding{p.wrong, p.trace}
}

// deaths calls f for no death, or, if the scenario has a victim, for its death before each of its
// writes, and after the last one.
func (x *explorer) deaths(f func(victim, killAt int) *finding) *finding {
	if !x.scenario.death {
		return f(-1, 0)
	}
	for at := 1; at <= x.scenario.writes; at++ {
		if found := f(0, at); found != nil {
			return found
		}
	}
	return nil
}

// learn finds out which words are contended, and how often the victim writes.
func (x *explorer) learn(seed uint64, rounds int) *finding {
	x.stage.forget()
	most := 0
	for i := range rounds {
		p := x.random(rand.New(rand.NewPCG(seed, uint64(i))))
		p.killAt = i / 2 % 2 * (1 + i/4%(most+1)) // half of the time the victim lives to the end
		if found := x.play(p); found != nil {
			return found
		}
		for _, a := range p.actors {
			if x.scenario.death && a.d.seat == 0 && !a.bell {
				most = max(most, a.wrote)
			}
		}
		x.stage.settle()
	}
	x.scenario.writes = most + 1
	return nil
}

func (x *explorer) random(r *rand.Rand) *play {
	p := &play{most: 1 << 30, victim: -1}
	if x.scenario.death {
		p.victim = 0
	}
	p.choose = func(options int, free bool) int {
		if !free && r.IntN(4) != 0 {
			return 0
		}
		return r.IntN(options)
	}
	return p
}

// all explores every schedule of at most most preemptions, with as many deaths, and begins anew
// when a word is found to be contended.
func (x *explorer) all() *finding {
again:
	x.explored = 0
	found := x.deaths(x.depthFirst)
	if found == nil && x.stage.settle() {
		goto again
	}
	return found
}

func (x *explorer) depthFirst(victim, killAt int) *finding {
	s := new(search)
	for n := 1; ; n++ {
		found := x.play(&play{most: x.most, choose: s.choose, victim: victim, killAt: killAt})
		if found != nil {
			s.at = 0
			return x.play(&play{most: x.most, choose: s.choose, victim: victim, killAt: killAt, tracing: true})
		}
		if !s.next() {
			return nil
		}
		if n == x.limit {
			return nil
		}
	}
}

// sample plays so many random schedules.
func (x *explorer) sample(seed uint64, rounds int) *finding {
	for i := range rounds {
		p := x.random(rand.New(rand.NewPCG(seed, uint64(i))))
		if x.scenario.death {
			p.killAt = 1 + i%x.scenario.writes
		}
		p.tracing = true
		if found := x.play(p); found != nil {
			return found
		}
	}
	return nil
}
