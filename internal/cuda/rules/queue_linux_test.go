package rules_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
)

// queues asks what the clock of package cuda relies on: see docs/cuda.md.
var queues = []rule{
	{step: "Q1", asked: "the address of the host's memory that is registered", want: "the host's own",
		ask: func(p *process) string {
			p.enter()
			w := p.register(sharedPage())
			if uint64(w.at) == uint64(uintptr(unsafe.Pointer(w.word))) {
				return "the host's own"
			}
			return "another one"
		}},
	{step: "Q2", asked: "a number that a stream writes to memory of the host", want: "the host reads it",
		ask: func(p *process) string {
			p.enter()
			w := p.register(sharedPage())
			testutil.MustNoError(p.StreamWriteValue32(p.stream, w.at, 7))
			return when(func() bool { return w.word.Load() == 7 }, "the host reads it", "the host never reads it")
		}},
	{step: "Q3", asked: "a stream that waits for a number which the host writes", want: "goes on",
		ask: func(p *process) string {
			p.enter()
			w := p.register(sharedPage())
			testutil.MustNoError(p.StreamWaitValue32(p.stream, w.at, 5))
			if said := p.idle(p.stream, "waits"); said != "waits" {
				return "before it: " + said
			}
			w.word.Store(5)
			return p.idle(p.stream, "waits for ever")
		}},
	{step: "Q4", asked: "a stream that waits for a number which another process's stream writes to shared memory " +
		"of the host",
		want: "goes on", ask: func(p *process) string {
			p.enter()
			f, page := sharedPage()
			w, o := p.register(f, page), p.start("write a number")
			defer o.kill()
			testutil.MustNoError(p.StreamWaitValue32(p.stream, w.at, 5))
			o.say("write", f)
			o.hear()
			return p.idle(p.stream, "waits for ever")
		}},
	{step: "Q5", asked: "a second stream, while the first waits for a number of memory of the device and there is " +
		"one queue",
		env: oneQueue, want: "waits, also for the number that it writes itself", ask: func(p *process) string {
			p.enter()
			word, side := p.create(0), testutil.Must(p.StreamCreate(cudriver.StreamNonBlocking))
			testutil.MustNoError(p.StreamWaitValue32(p.stream, word.base, 1))
			testutil.MustNoError(p.StreamWriteValue32(side, word.base, 1))
			return p.idle(p.stream, "waits, also for the number that it writes itself")
		}},
	{step: "Q5", asked: "the same, where the number is in memory of the host, which writes it", env: oneQueue,
		want: "goes on", ask: func(p *process) string {
			p.enter()
			w, m, side := p.register(sharedPage()), p.create(0),
				testutil.Must(p.StreamCreate(cudriver.StreamNonBlocking))
			testutil.MustNoError(p.StreamWaitValue32(p.stream, w.at, 1))
			testutil.MustNoError(p.MemsetD8Async(m.base, 1, 4, side))
			w.word.Store(1)
			return p.idle(side, "waits for ever")
		}},
	{step: "Q8", asked: "a page of the host that is registered already",
		want: "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED (712)", ask: func(p *process) string {
			p.enter()
			_, page := sharedPage()
			testutil.MustNoError(p.MemHostRegister(page, cudriver.HostPortable|cudriver.HostDeviceMap))
			return said(p.MemHostRegister(page, cudriver.HostPortable|cudriver.HostDeviceMap))
		}},
	{step: "Q8", asked: "a page and a half of the host", want: "CUDA_SUCCESS (0)", ask: func(p *process) string {
		p.enter()
		f, size := testutil.Must(sys.Memfd("pages")), os.Getpagesize()
		testutil.MustNoError(sys.Resize(f, int64(2*size)))
		pages := testutil.Must(sys.MapRange(f, 0, 2*size))
		return said(p.MemHostRegister(pages[:size+size/2], cudriver.HostPortable|cudriver.HostDeviceMap))
	}},
	{step: "Q9", asked: "what the stream of a killed process still writes to memory of the host when it has been " +
		"waited for",
		want: "nothing", ask: func(p *process) string {
			p.enter()
			f, page := sharedPage()
			w, o := p.register(f, page), p.start("write for long")
			o.say("write", f)
			if said := when(func() bool { return w.word.Load() > 0 }, "", "it writes nothing"); said != "" {
				o.kill()
				return said
			}
			o.kill()
			first := w.word.Load()
			time.Sleep(200 * time.Millisecond)
			if second := w.word.Load(); second != first {
				return fmt.Sprintf("%d, and later %d", first, second)
			}
			return "nothing"
		}},
	{step: "Q6", asked: "calls that do not return while a stream waits for a number", ask: func(p *process) string {
		p.enter()
		p.kernel("toil")
		w, m, legacy := p.register(sharedPage()), p.create(0), testutil.Must(p.MemAlloc(4096))
		ctx, host := p.ctx, make([]byte, 8192)
		var waits []string
		calls := map[string]func() error{
			"cuMemAlloc":         func() error { _, err := p.MemAlloc(4096); return err },
			"cuMemFree":          func() error { return p.MemFree(legacy) },
			"cuModuleLoadDataEx": func() error { p.kernel("toil"); return nil },
			"cuMemUnmap":         func() error { return p.MemUnmap(m.base, m.size) },
			"cuMemHostRegister":  func() error { return p.MemHostRegister(host, 0) },
			"cuMemCreate":        func() error { _, err := p.MemCreate(m.size, cudriver.Pinned(0, true)); return err },
			"cuStreamCreate":     func() error { _, err := p.StreamCreate(cudriver.StreamNonBlocking); return err },
			"cuMemGetInfo":       func() error { _, _, err := p.MemGetInfo(); return err },
		}
		for _, name := range sorted(calls) {
			w.word.Store(0)
			testutil.MustNoError(p.StreamWaitValue32(p.stream, w.at, 1))
			done := make(chan error, 1)
			go func() {
				runtime.LockOSThread()
				testutil.MustNoError(p.CtxSetCurrent(ctx))
				done <- calls[name]()
			}()
			select {
			case err := <-done:
				testutil.MustNoError(err)
			case <-time.After(onDevice(p, 2*time.Second, 50*time.Millisecond)):
				waits = append(waits, name)
				w.word.Store(1)
				testutil.MustNoError(<-done)
			}
			w.word.Store(1)
			testutil.MustNoError(p.StreamSynchronize(p.stream))
		}
		return fmt.Sprintf("%d of %d: %s", len(waits), len(calls), strings.Join(waits, ", "))
	}},
	{step: "Q7", asked: "how much work a stream takes while it waits for a number", ask: func(p *process) string {
		p.enter()
		w, m := p.register(sharedPage()), p.create(0)
		testutil.MustNoError(p.StreamWaitValue32(p.stream, w.at, 1))
		var n atomic.Int64
		done := make(chan bool)
		go func() {
			runtime.LockOSThread()
			testutil.MustNoError(p.CtxSetCurrent(p.ctx))
			for range 10000 {
				testutil.MustNoError(p.MemsetD8Async(m.base, 1, 4, p.stream))
				n.Add(1)
			}
			close(done)
		}()
		for last := int64(-1); n.Load() != last; time.Sleep(200 * time.Millisecond) {
			last = n.Load()
		}
		took := n.Load()
		w.word.Store(1)
		<-done
		testutil.MustNoError(p.StreamSynchronize(p.stream))
		return fmt.Sprintf("%d pieces of 10000", took)
	}},
}

// oneQueue has all streams of a process in one queue of the hardware.
const oneQueue = "CUDA_DEVICE_MAX_CONNECTIONS=1"

func sorted[T any](m map[string]T) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// A hostWord is the first number of a page of the host that is registered.
type hostWord struct {
	word *atomic.Uint32
	at   cudriver.Ptr
}

// sharedPage makes a page that other processes can map.
func sharedPage() (*os.File, []byte) {
	f := testutil.Must(sys.Memfd("page"))
	testutil.MustNoError(sys.Resize(f, int64(os.Getpagesize())))
	return f, testutil.Must(sys.MapRange(f, 0, os.Getpagesize()))
}

func (p *process) register(_ *os.File, page []byte) hostWord {
	testutil.MustNoError(p.MemHostRegister(page, cudriver.HostPortable|cudriver.HostDeviceMap))
	return hostWord{(*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(page))),
		testutil.Must(p.MemHostGetDevicePointer(page))}
}

// when waits for what comes soon.
func when(came func() bool, yes, no string) string {
	for end := time.Now().Add(patience / 12); !came(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return no
		}
	}
	return yes
}

// idle says whether a stream ends its work, or else what it does in a second instead; that is
// longer where it has to.
func (p *process) idle(s cudriver.Stream, otherwise string) string {
	end := time.Now().Add(onDevice(p, 2*time.Second, 300*time.Millisecond))
	for ; time.Now().Before(end); time.Sleep(time.Millisecond) {
		if err := p.StreamQuery(s); said(err) != said(cudriver.Check("", cudriver.ErrorNotReady)) {
			if err != nil {
				return said(err)
			}
			return "goes on"
		}
	}
	return otherwise
}

func init() {
	helpers["write a number"] = func(p *process) {
		p.enter()
		_, f, err := p.line.hear()
		testutil.MustNoError(err)
		w := p.register(f, testutil.Must(sys.MapRange(f, 0, os.Getpagesize())))
		testutil.MustNoError(p.StreamWriteValue32(p.stream, w.at, 5))
		testutil.MustNoError(p.StreamSynchronize(p.stream))
		testutil.MustNoError(p.line.say("written"))
		p.line.hear()
	}
	helpers["write for long"] = func(p *process) {
		p.enter()
		_, f, err := p.line.hear()
		testutil.MustNoError(err)
		m, toil := p.create(0), p.kernel("toil")
		w := p.register(f, testutil.Must(sys.MapRange(f, 0, os.Getpagesize())))
		for n := range uint32(200) { // more than there is time for
			toil.launch(1, 1, uint64(m.base), onDevice[uint64](p, 1e5, 1e3))
			testutil.MustNoError(p.StreamWriteValue32(p.stream, w.at, n+1))
		}
		p.line.hear()
	}
	helpers["promise and die"] = func(p *process) {
		p.enter()
		e := testutil.Must(p.EventCreate(cudriver.EventInterprocess | cudriver.EventDisableTiming))
		w := p.register(sharedPage())
		testutil.MustNoError(p.StreamWaitValue32(p.stream, w.at, 1)) // which nobody writes
		testutil.MustNoError(p.EventRecord(e, p.stream))
		h := testutil.Must(p.IPCGetEventHandle(e))
		testutil.MustNoError(p.line.say(fmt.Sprintf("%x", h[:])))
		p.line.hear()
	}
}
