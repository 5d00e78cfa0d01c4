package arena_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/arena/audit"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
)

// check audits d from outside.
func check(t *testing.T, d *arena.Domain) audit.Report {
	t.Helper()
	all, err := arena.Check(testutil.Context(t), os.Getpid())
	testutil.NoError(t, err)
	i := slices.IndexFunc(all, func(r audit.Report) bool { return r.Token == d.Token() })
	if i < 0 {
		t.Fatalf("the domain is not among %d", len(all))
	}
	return all[i]
}

func TestCheck_LiveDomainIsSound(t *testing.T) {
	d := newDomain(t, 64<<20)
	r, s, v := newRing(t, d, 8)
	defer r.Close()
	lock, err := d.NewSync(arena.SyncOptions{Form: arena.FormSemaphore, Limit: 3})
	testutil.NoError(t, err)
	defer lock.Close()
	begin := func() *actor {
		a := start(t, d, "storm", ringArgs(r, s, v)...)
		a.hear()
		return a
	}
	all := []*actor{begin(), begin(), begin()}
	passes := 0
	for i := range 20 {
		if i%4 == 3 {
			all[i%3].kill()
			all[i%3] = begin()
		}
		report := check(t, d)
		passes += report.Passes
		for _, v := range report.Violations {
			t.Errorf("check %d: %v", i, v)
		}
		if report.Rings != 1 || report.Locks != 1 || report.Slots < 8 || report.Participants < 4 || report.Blocks < 4 {
			t.Errorf("check %d saw %+v", i, report.Counts)
		}
	}
	t.Logf("%d passes", passes)
	for _, a := range all {
		a.kill()
	}
	untilReaped(t, d)
}

func TestCheck_NamesWrongWords(t *testing.T) {
	d := newDomain(t, 64<<20)
	var blocks []arena.Handle
	for range 9 {
		blocks = append(blocks, alloc(t, d, 100_000, "x"))
	}
	var rings []*arena.Ring
	var cells []*arena.Sync
	for i := range 5 {
		r, _, _ := newRing(t, d, 4)
		defer r.Close()
		switch i {
		case 0, 1:
			testutil.NoError(t, r.TryPut([]byte("body"), []arena.Handle{alloc(t, d, 5000, "y")}, true))
		case 4:
			testutil.NoError(t, r.TryPut(make([]byte, 5000), []arena.Handle{alloc(t, d, 5000, "z")}, true))
		}
		rings = append(rings, r)
	}
	for range 3 {
		s, err := d.NewSync(arena.SyncOptions{Form: arena.FormSemaphore, Limit: 2})
		testutil.NoError(t, err)
		defer s.Close()
		cells = append(cells, s)
	}
	if r := check(t, d); len(r.Violations) != 0 {
		t.Fatalf("before: %v", r.Violations)
	}
	plants, mend := arena.PlantAll(d, blocks, rings, cells)
	r := check(t, d)
	mend()
	known := make(map[string]bool)
	for _, p := range plants {
		known[p.Name] = true
		if !slices.ContainsFunc(r.Violations, func(v audit.Violation) bool {
			return v.Name == p.Name && (p.Part == "" || v.Part == p.Part) && v.Invariant != "" && v.Found != "" &&
				v.Remedy != ""
		}) {
			t.Errorf("%s of %s is not found", p.Name, p.Part)
		}
	}
	if t.Failed() {
		t.Logf("%+v, %d passes, %d undecided", r.Counts, r.Passes, r.Undecided)
	}
	for _, v := range r.Violations {
		if !known[v.Name] || t.Failed() {
			t.Errorf("found: %v", v)
		}
	}
	if r := check(t, d); len(r.Violations) != 0 {
		t.Errorf("after: %v", r.Violations)
	}
}

func TestCheck_RefusesOtherProcesses(t *testing.T) {
	ctx := testutil.Context(t)
	if _, err := arena.Check(ctx, 1<<22); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("no process: %v", err)
	}
	cmd := exec.Command("sleep", "60")
	testutil.NoError(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if _, err := arena.Check(ctx, cmd.Process.Pid); !errors.Is(err, arena.ErrNoDomain) {
		t.Errorf("another program: %v", err)
	}
}

// imageOf returns the control segment of a domain with objects, the used beginning of its data
// segment, and the offsets of the objects in it. The domain is closed.
func imageOf(t testing.TB) (control, data []byte, objects []int) {
	d := newDomain(t, 24<<20)
	args, regions, free, err := scribbledObjects(d)
	testutil.NoError(t, err)
	for _, r := range regions {
		for off := r.off; off < r.off+r.len; off += 8 {
			objects = append(objects, off)
		}
	}
	r, err := d.OpenRing(handleArg(args[0]))
	testutil.NoError(t, err)
	for i := range 3 {
		testutil.NoError(t, r.TryPut(make([]byte, 150*i), []arena.Handle{alloc(t, d, 100, "m")}, true))
	}
	ctl, mem := arena.ImageSizes(d)
	files := d.Files()
	control, data = make([]byte, ctl), make([]byte, mem)
	_, err = files[0].ReadAt(control, 0)
	testutil.NoError(t, err)
	_, err = files[1].ReadAt(data, 0)
	testutil.NoError(t, err)
	r.Close()
	free()
	return control, data, objects
}

// FuzzCheck writes words into a domain, each given by a place and a value, and checks it in one
// pass.
func FuzzCheck(f *testing.F) {
	control, data, objects := imageOf(f)
	write := func(place uint32, v uint64) []byte {
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(nil, place), v)
	}
	f.Add([]byte{})
	f.Add(write(8, ^uint64(0)))                                     // count of blocks
	f.Add(append(write(8, 1<<40), write(9, 1<<40)...))              // and headers with pages
	f.Add(append(write(30, 500), write(10, ^uint64(0))...))         // lanes, end of the addresses
	f.Add(write(1<<31, 1<<30))                                      // slots of a ring
	f.Add(write(1<<30+5, ^uint64(0)))                               // a state word
	f.Add(append(write(1<<30+6, 0xff<<40), write(1<<31, 1<<60)...)) // an extent
	f.Fuzz(func(t *testing.T, writes []byte) {
		ctl, mem := slices.Clone(control), slices.Clone(data)
		words, bytes := arena.WordsIn(ctl), arena.WordsIn(mem)
		for ; len(writes) >= 12; writes = writes[12:] {
			place, v := binary.LittleEndian.Uint32(writes), binary.LittleEndian.Uint64(writes[4:])
			switch n := int(place & (1<<30 - 1)); place >> 30 {
			case 0:
				words[n%(arena.LanesAt/8)] = v
			case 1:
				words[arena.BlocksAt/8+n%(400*8)] = v
			case 2:
				bytes[objects[n%len(objects)]/8] = v
			default:
				words[n%len(words)] = v
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := arena.CheckImage(ctx, ctl, mem); err != nil {
			t.Error(err)
		}
	})
}

// TestCheck_Garbage fills a domain with garbage and checks it through its files. The check must not
// panic or hang, and must not back pages by reading them.
func TestCheck_Garbage(t *testing.T) {
	d := newDomain(t, 24<<20)
	_, regions, free, err := scribbledObjects(d)
	testutil.NoError(t, err)
	control, data, err := d.Dup(sys.Reopen)
	testutil.NoError(t, err)
	defer control.Close()
	defer data.Close()
	free()
	testutil.NoError(t, d.Close())
	allocated := func() int64 {
		n, err := sys.Allocated(control)
		testutil.NoError(t, err)
		m, err := sys.Allocated(data)
		testutil.NoError(t, err)
		return n + m
	}
	r := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range 200 {
		off, f := int64(64+8*r.IntN(7000)), control
		switch r.IntN(3) {
		case 0:
			off = int64(arena.BlocksAt + 8*r.IntN(3000))
		case 1:
			in := regions[r.IntN(len(regions))]
			off, f = int64(in.off+8*r.IntN(in.len/8)), data
		}
		v := r.Uint64() >> r.IntN(64)
		_, err := f.WriteAt(binary.LittleEndian.AppendUint64(nil, v), off)
		testutil.NoError(t, err)
		before := allocated()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		pass, err := arena.CheckFiles(ctx, control, data)
		cancel()
		if err != nil && !errors.Is(err, arena.ErrVersion) && !strings.Contains(err.Error(), "data segment") {
			t.Fatal(err)
		}
		found += len(pass.Firm) + len(pass.Brief) + pass.More
		if after := allocated(); after != before {
			t.Fatalf("%d bytes are backed, %d before the check", after, before)
		}
	}
	if found == 0 {
		t.Error("nothing was found in garbage")
	}
}

// Operations that stay unfinished are no violations, and neither are the deaths that follow.
func TestCheck_UnfinishedOperationsAreLegal(t *testing.T) {
	for _, halt := range arena.Halts {
		t.Run(halt.Name, func(t *testing.T) {
			everyWorld(t, 16<<20, func(t *testing.T, f *family) {
				a, b := f.first, f.join()
				r, s, v := newRing(t, a, 8)
				other := open(t, b, r.Handle(), s, v)
				testutil.NoError(t, r.TryPut(nil, []arena.Handle{alloc(t, a, 64, "queued")}, true))
				testutil.NoError(t, halt.Do(b, other, alloc(t, b, 64, "held")))
				judge := func(when string) {
					pass, err := arena.PassNow(a)
					testutil.NoError(t, err)
					for _, v := range append(pass.Firm, pass.Brief...) {
						t.Errorf("%s: %v", when, v)
					}
				}
				judge("halted")
				letReap := a.PreventReaping()
				testutil.NoError(t, b.Abandon())
				judge("dead")
				letReap()
				testutil.Eventually(t, func() bool { reap(t, a); return a.Stats().Reaped == 1 }, "nobody reaped")
				judge("reaped")
			})
		})
	}
}

// TestCheck_AllObjectsAreSound checks domains while processes use rings, news, names and cells of
// all forms, and one of them is killed.
func TestCheck_AllObjectsAreSound(t *testing.T) {
	passes := 0
	for n := range 5 {
		d := newDomain(t, 24<<20)
		args, _, free, err := scribbledObjects(d)
		testutil.NoError(t, err)
		var all []*scribbled
		for i := range 3 {
			all = append(all, startScribbled(t, d, append([]string{"1", string('0' + rune(i))}, args...)))
		}
		for _, w := range all {
			if !w.awaitReady() {
				t.Fatalf("a worker did not begin: %s", w.err.Bytes())
			}
		}
		for range 10 {
			report := check(t, d)
			passes += report.Passes
			for _, v := range report.Violations {
				t.Errorf("domain %d: %v", n, v)
			}
			if !all[0].killed {
				all[0].killed = true
				all[0].cmd.Process.Kill() // it may have ended already
			}
		}
		for _, w := range all {
			<-w.ended
		}
		free()
		untilReaped(t, d)
		testutil.NoError(t, d.Close())
	}
	t.Logf("%d passes", passes)
}
