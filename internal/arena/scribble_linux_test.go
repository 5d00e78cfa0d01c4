package arena_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
)

var (
	scribbleTrials = flag.Int("scribble.trials", 200, "domains into which garbage is written")
	scribbleSeed   = flag.Uint64("scribble.seed", 1, "of the random choices")
	scribbleOnly   = flag.String("scribble.only", "", "a region: header, participants, lanes, blocks, rings or cells")
	scribbleJSON   = flag.Bool("scribble.json", false, "print the figures as a line of JSON")
)

// scribbleTime is how long the workers of a trial go on, and scribbleHang is when one that has not
// ended hangs: none of them waits for anything longer than a fraction of that.
const (
	scribbleTime = 120 * time.Millisecond
	scribbleHang = 20 * time.Second
)

func init() { actors["scribbled"] = actScribbled }

// TestScribble_NobodyCrashesOrHangs writes garbage into the words of the control segment, and of
// the rings and cells in the data segment, while processes work, and one of them is killed, so that
// the others reap it by those words. They may fail in what they do, and must be able to go on and
// to leave.
func TestScribble_NobodyCrashesOrHangs(t *testing.T) {
	trials := *scribbleTrials
	if testing.Short() {
		trials = min(trials, 30) // a trial takes three seconds where the processor is emulated
	}
	s := &scribbles{faults: map[string]int{}, words: map[string]int{}}
	var next atomic.Int64
	var g sync.WaitGroup
	begin := time.Now()
	for range 4 { // most of the time of a trial goes to starts and waits
		g.Go(func() {
			for n := int(next.Add(1)); n <= trials && t.Context().Err() == nil; n = int(next.Add(1)) {
				s.trial(t, n)
			}
		})
	}
	g.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Logf("%d trials, %d words written (%v), %d crashed, %d hung, %d killed, %d operations, %d of them failed, "+
		"%d of these with ErrCorrupt, %v",
		s.trials, s.written, s.words, s.crashes, s.hangs, s.kills, s.done.Ops, s.done.Failed, s.done.Corrupt,
		time.Since(begin).Round(time.Second))
	for f, n := range s.faults {
		t.Errorf("%d times: %s", n, f)
	}
	if s.trials < trials || s.written < s.trials || s.done.Ops < 10*s.trials || s.done.Failed == 0 {
		t.Error("too little went on to say anything")
	}
	if *scribbleJSON {
		b, err := json.Marshal(map[string]int{"trials": s.trials, "scribbles": s.written, "crashes": s.crashes,
			"hangs": s.hangs, "kills": s.kills})
		testutil.NoError(t, err)
		fmt.Printf("%s\n", b)
	}
}

// scribbles are what all trials came to.
type scribbles struct {
	mu                                     sync.Mutex
	trials, written, crashes, hangs, kills int
	words                                  map[string]int // written, by region
	faults                                 map[string]int // by what was said of them
	done                                   scribbledSays
}

// scribbledSays is what a worker says at its end.
type scribbledSays struct{ Ops, Failed, Corrupt int }

func (s *scribbles) trial(t *testing.T, n int) {
	r := rand.New(rand.NewPCG(*scribbleSeed, uint64(n)))
	d, err := arena.New(arena.Options{Budget: 24 << 20, Reserve: 256 << 20})
	testutil.NoError(t, err)
	args, objects, free, err := scribbledObjects(d)
	testutil.NoError(t, err)
	control, data, err := d.Dup(sys.Reopen)
	testutil.NoError(t, err)
	defer control.Close()
	defer data.Close()
	words, err := sys.Map(control, arena.ControlSize)
	testutil.NoError(t, err)
	defer sys.Unmap(words)
	bytes, err := sys.Map(data, objectsEnd(objects))
	testutil.NoError(t, err)
	defer sys.Unmap(bytes)

	var all []*scribbled
	for i := range 3 {
		all = append(all, startScribbled(t, d, append([]string{fmt.Sprint(n), fmt.Sprint(i)}, args...)))
	}
	for _, w := range all {
		if !w.awaitReady() {
			t.Errorf("trial %d: a worker did not begin: %s", n, w.err.Bytes())
		}
	}
	free()
	testutil.NoError(t, d.Close()) // what is written is not to hit the test itself
	victim := r.IntN(4)
	var said []string
	for range 1 + r.IntN(6) {
		time.Sleep(time.Duration(r.IntN(12)) * time.Millisecond)
		said = append(said, s.scribble(r, words, bytes, objects))
		if victim < len(all) && r.IntN(3) == 0 {
			all[victim].cmd.Process.Kill()
			all[victim].killed = true
			victim = len(all)
		}
	}
	for _, w := range all {
		s.judge(w, n, said)
	}
	s.mu.Lock()
	s.trials++
	s.mu.Unlock()
}

// A region is a part of a segment with words that matter.
type region struct {
	name     string
	off, len int
	data     bool // of the data segment
}

// objectsEnd returns how many bytes of the data segment have all objects in them, in whole pages.
func objectsEnd(objects []region) (end int) {
	for _, o := range objects {
		end = max(end, o.off+o.len)
	}
	return (end + 1<<16 - 1) &^ (1<<16 - 1)
}

func regions(words []byte, objects []region) []region {
	load := func(off int) int { return int(*(*uint64)(unsafe.Pointer(&words[off]))) }
	blocks := min(max(load(arena.BlocksWord), 2), 400)
	all := []region{
		{"header", 0, arena.HeaderSize, false}, {"participants", arena.ParticipantsAt, 4 * 256, false},
		{"lanes", arena.LanesAt, 4 * 64 * 64, false}, {"blocks", arena.BlocksAt, 64 * blocks, false},
		{"blocks", arena.BlocksAt, 64 * 40, false},
	}
	return slices.DeleteFunc(append(all, objects...),
		func(r region) bool { return *scribbleOnly != "" && r.name != *scribbleOnly })
}

// scribble writes garbage into a word and says which.
func (s *scribbles) scribble(r *rand.Rand, words, bytes []byte, objects []region) string {
	all := regions(words, objects)
	in := all[r.IntN(len(all))]
	if in.data {
		words = bytes
	}
	at := func(i int) *uint64 { return (*uint64)(unsafe.Pointer(&words[in.off+8*i])) }
	n := in.len / 8
	i := r.IntN(n)
	old := atomic.LoadUint64(at(i))
	v := old
	kind := r.IntN(7)
	switch kind {
	case 0:
		v = r.Uint64()
	case 1, 2:
		for range 1 + r.IntN(3) {
			v ^= 1 << r.IntN(64)
		}
	case 3:
		v = 0
	case 4:
		v = ^uint64(0)
	case 5:
		v = atomic.LoadUint64(at(min(max(i+r.IntN(17)-8, 0), n-1)))
	case 6:
		v = uint64(r.IntN(5000))
	}
	atomic.StoreUint64(at(i), v)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written++
	s.words[in.name]++
	return fmt.Sprintf("%s+%d: %#x to %#x", in.name, 8*i, old, v)
}

// A scribbled is a worker of a trial.
type scribbled struct {
	cmd      *exec.Cmd
	err, out bytes.Buffer
	ready    *os.File
	killed   bool
	ended    chan error
}

func startScribbled(t *testing.T, d *arena.Domain, args []string) *scribbled {
	w := &scribbled{ended: make(chan error, 1)}
	w.cmd = exec.Command("/proc/self/exe", args...)
	w.cmd.Env = append(os.Environ(), actorEnv+"=scribbled", actorEnv+"_FILES=1", "GOTRACEBACK=all")
	w.cmd.Stderr, w.cmd.Stdout = &w.err, &w.out
	up, ready, err := os.Pipe()
	testutil.NoError(t, err)
	defer ready.Close()
	w.ready = up
	w.cmd.ExtraFiles = append(d.Files(), ready)
	testutil.NoError(t, w.cmd.Start())
	go func() { w.ended <- w.cmd.Wait() }()
	return w
}

// awaitReady waits until the worker holds all that it uses.
func (w *scribbled) awaitReady() bool {
	n, _ := w.ready.Read(make([]byte, 1))
	w.ready.Close()
	return n == 1
}

// judge waits for a worker's end and sees how it came.
func (s *scribbles) judge(w *scribbled, n int, said []string) {
	hung := false
	select {
	case <-w.ended:
	case <-time.After(scribbleHang):
		hung = true
		w.cmd.Process.Signal(syscall.SIGQUIT) // its goroutines say where they are
		select {
		case <-w.ended:
		case <-time.After(5 * time.Second):
			w.cmd.Process.Kill()
			<-w.ended
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st := w.cmd.ProcessState.Sys().(syscall.WaitStatus)
	var done scribbledSays
	switch {
	case hung:
		s.hangs++
		s.faults["hangs: "+whereHung(w.err.String())]++
	case w.killed && st.Signaled() && st.Signal() == syscall.SIGKILL:
		s.kills++
		return
	case st.ExitStatus() == 0 && json.Unmarshal(w.out.Bytes(), &done) == nil:
		s.done.Ops += done.Ops
		s.done.Failed += done.Failed
		s.done.Corrupt += done.Corrupt
		return
	default:
		s.crashes++
		s.faults["crashed: "+whyCrashed(w.err.String(), w.cmd.ProcessState.String())]++
	}
	if dir := os.Getenv("SCRIBBLE_DUMPS"); dir != "" {
		os.WriteFile(fmt.Sprintf("%s/%d-%d", dir, n, w.cmd.Process.Pid),
			[]byte(strings.Join(said, "\n")+"\n"+w.err.String()), 0o644)
	}
}

var shmFrame = regexp.MustCompile(`internal/arena\.([^\n]*)\([^()\n]*\)\n\t[^\n]*/([a-z_]+\.go:\d+)`)

// whyCrashed returns the first line of a panic and where in this package it was.
func whyCrashed(said, state string) string {
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") ||
			strings.HasPrefix(line, "unexpected fault") || strings.HasPrefix(line, "SIG") {
			where := ""
			if m := shmFrame.FindStringSubmatch(said); m != nil {
				where = m[1] + " " + m[2]
			}
			return regexp.MustCompile(`\d{2,}|0x[0-9a-f]+`).ReplaceAllString(strings.TrimSpace(line), "#") +
				" at " + where
		}
	}
	return state + " " + said[:min(len(said), 200)]
}

// whereHung returns where the worker's main goroutine is.
func whereHung(said string) string {
	for g := range strings.SplitSeq(said, "\n\n") {
		if strings.Contains(g, "actScribbled") {
			var at []string
			for _, m := range shmFrame.FindAllStringSubmatch(g, 5) {
				at = append(at, m[1])
			}
			return strings.Join(at, " < ")
		}
	}
	return said[:min(len(said), 300)]
}

// scribbledObjects makes what the workers use together; free lets go of it.
func scribbledObjects(d *arena.Domain) (args []string, objects []region, free func(), err error) {
	var held []arena.Handle
	words := func(name string, h arena.Handle, most int) {
		off, size := d.Extent(h)
		objects = append(objects, region{name, int(off), min(int(size), most), true})
	}
	add := func(hs ...arena.Handle) {
		for _, h := range hs {
			held = append(held, h)
			args = append(args, argOf(h))
		}
	}
	for _, opts := range []arena.RingOptions{{Capacity: 8}, {Capacity: 300, Grow: true}, {Capacity: 4, News: true}} {
		r, a, b, err := d.NewRing(opts)
		if err != nil {
			return nil, nil, nil, err
		}
		add(r.Handle(), a, b)
		words("rings", r.Handle(), arena.RingHeadSize+4*arena.SlotSize)
		r.Close()
	}
	for form := arena.FormMutex; form <= arena.FormBarrier; form++ {
		s, err := d.NewSync(arena.SyncOptions{Form: form, Limit: 2})
		if err != nil {
			return nil, nil, nil, err
		}
		add(s.Handle())
		words("cells", s.Handle(), 1<<10)
		s.Close()
	}
	return args, objects, func() {
		for _, h := range held {
			d.Release(h)
		}
	}, nil
}

// A scribbler's worker does everything that a process can do with a domain. What fails is counted:
// the words that it reads may be garbage.
type scribbledWorker struct {
	d     *arena.Domain
	rand  *rand.Rand
	me    int
	rings []*arena.Ring
	syncs []*arena.Sync
	hoard []arena.Handle
	said  scribbledSays
}

func actScribbled(d *arena.Domain, args []string) error {
	w := &scribbledWorker{d: d}
	var trial int
	fmt.Sscan(args[0], &trial)
	fmt.Sscan(args[1], &w.me)
	w.rand = rand.New(rand.NewPCG(uint64(trial), uint64(w.me)))
	for i := range 3 {
		r, err := openAs(d, args[2+3*i], args[3+3*i], args[4+3*i])
		if err != nil {
			return err
		}
		w.rings = append(w.rings, r)
	}
	for form := arena.FormMutex; form <= arena.FormBarrier; form++ {
		h := handleArg(args[11+int(form-arena.FormMutex)])
		if err := d.Import(h); err != nil {
			return err
		}
		s, err := d.OpenSync(h, form)
		if err != nil {
			return err
		}
		w.syncs = append(w.syncs, s)
	}
	ready := os.NewFile(5, "ready")
	ready.Write([]byte{1})
	for end := time.Now().Add(scribbleTime); time.Now().Before(end); {
		w.count(w.step())
	}
	for _, r := range w.rings {
		r.Close()
	}
	for _, s := range w.syncs {
		s.Close()
	}
	w.count(d.Close())
	b, err := json.Marshal(w.said)
	if err != nil {
		return err
	}
	say("%s", b)
	return nil
}

func (w *scribbledWorker) count(err error) {
	w.said.Ops++
	if err != nil {
		w.said.Failed++
	}
	if errors.Is(err, arena.ErrCorrupt) {
		w.said.Corrupt++
	}
}

func (w *scribbledWorker) step() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	switch w.rand.IntN(16) {
	case 0, 1, 2:
		return w.alloc(ctx)
	case 3, 4:
		return w.put(ctx)
	case 5, 6:
		return w.get(ctx)
	case 7:
		return w.ring()
	case 8:
		return w.news()
	case 9, 10:
		return w.name()
	case 11:
		return w.report()
	default:
		return w.sync(ctx)
	}
}

func (w *scribbledWorker) alloc(ctx context.Context) error {
	size := []int{0, 64, 300, 5000, 70_000, 3 << 20}[w.rand.IntN(6)]
	h, err := w.d.AllocWait(ctx, size)
	if err != nil {
		return err
	}
	p, err := w.d.Bytes(h)
	if len(p) > 0 {
		p[0], p[len(p)-1] = 1, 1
	}
	if w.hoard = append(w.hoard, h); len(w.hoard) > 4 {
		err = errors.Join(err, w.d.Release(w.hoard[0]))
		w.hoard = w.hoard[1:]
	}
	return err
}

func (w *scribbledWorker) put(ctx context.Context) error {
	var hs []arena.Handle
	for range w.rand.IntN(7) {
		h, err := w.d.Alloc(100)
		if err != nil {
			return err
		}
		hs = append(hs, h)
	}
	err := w.rings[w.rand.IntN(2)].Put(ctx, make([]byte, w.rand.IntN(300)), hs, true)
	if err != nil {
		for _, h := range hs {
			err = errors.Join(err, w.d.Release(h))
		}
	}
	return err
}

func (w *scribbledWorker) get(ctx context.Context) error {
	var m arena.Message
	err := w.rings[w.rand.IntN(2)].Get(ctx, &m)
	if err != nil {
		return err
	}
	for _, h := range m.Blocks {
		_, e := w.d.Bytes(h)
		err = errors.Join(err, e)
	}
	m.Discard()
	return err
}

// ring makes a ring with a message in it that goes with it.
func (w *scribbledWorker) ring() error {
	r, s, e, err := w.d.NewRing(arena.RingOptions{Capacity: 2})
	if err != nil {
		return err
	}
	defer r.Close()
	h, err := w.d.Alloc(10)
	if err == nil {
		err = errors.Join(r.TryPut(nil, []arena.Handle{h}, false), w.d.Release(h))
	}
	return errors.Join(err, w.d.Release(s), w.d.Release(e), w.d.Release(r.Handle()))
}

func (w *scribbledWorker) news() error {
	var m arena.Message
	r := w.rings[2]
	if w.me == 0 {
		h, err := w.d.Alloc(10)
		if err != nil {
			return err
		}
		err = errors.Join(r.TryPut([]byte("news"), []arena.Handle{h}, false), w.d.Release(h))
		r.DropOld()
		return err
	}
	if _, err := r.Peek(&m); err != nil {
		return err
	}
	m.Discard()
	return nil
}

func (w *scribbledWorker) name() error {
	name := fmt.Sprintf("name %d", w.rand.IntN(6))
	switch w.rand.IntN(4) {
	case 0:
		h, err := w.d.Alloc(10)
		if err != nil {
			return err
		}
		return errors.Join(w.d.Bind(context.Background(), name, nil, []arena.Handle{h}), w.d.Release(h))
	case 1:
		return w.d.Unlink(name)
	case 2:
		w.d.Names()
		return nil
	}
	var m arena.Message
	err := w.d.Lookup(name, &m)
	if err == nil {
		m.Discard()
	}
	return err
}

// report reads what people look at.
func (w *scribbledWorker) report() error {
	w.d.Report()
	w.d.Observe()
	w.d.Holdings()
	_, err := w.d.Unreaped()
	return err
}

func (w *scribbledWorker) sync(ctx context.Context) error {
	s := w.syncs[w.rand.IntN(len(w.syncs))]
	switch s {
	case w.syncs[0]:
		m := arena.Mutex{Sync: s}
		return errors.Join(m.Lock(ctx), m.Unlock())
	case w.syncs[1]:
		m := arena.RWMutex{Sync: s}
		return errors.Join(m.RLock(ctx), m.RUnlock(), m.Lock(ctx), m.Unlock())
	case w.syncs[2]:
		m := arena.Semaphore{Sync: s}
		err := m.Acquire(ctx)
		if err == nil {
			err = m.Release()
		}
		return err
	case w.syncs[3]:
		m, c := arena.Mutex{Sync: w.syncs[0]}, arena.Cond{Sync: s}
		c.Notify(1)
		if err := m.Lock(ctx); err != nil {
			return err
		}
		held, err := c.Wait(ctx, m)
		if held {
			err = errors.Join(err, m.Unlock())
		}
		return err
	case w.syncs[4]:
		e := arena.Event{Sync: s}
		e.Set()
		e.Clear()
		return e.Wait(ctx)
	}
	b := arena.Barrier{Sync: s}
	_, err := b.Wait(ctx, nil)
	b.Reset()
	return err
}
