package rules_test

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/test/testutil"
)

var faults = []rule{
	{step: "T13", asked: "unmapping under work that is queued, and not begun", want: "waits for the work",
		lax: "does not wait, and the work: CUDA_ERROR_LAUNCH_FAILED (719)", ask: func(p *process) string {
			p.enter()
			m, w := p.create(1), p.register(sharedPage())
			testutil.MustNoError(p.StreamWaitValue32(p.stream, w.at, 1))
			testutil.MustNoError(p.MemsetD8Async(m.base, 2, 4, p.stream))
			unmapped := make(chan error, 1)
			go func() {
				runtime.LockOSThread()
				unmapped <- errors.Join(p.CtxSetCurrent(p.ctx), p.MemUnmap(m.base, m.size))
			}()
			select {
			case err := <-unmapped:
				testutil.MustNoError(err)
				w.word.Store(1)
				return "does not wait, and the work: " + said(p.StreamSynchronize(p.stream))
			case <-time.After(onDevice(p, 2*time.Second, 100*time.Millisecond)):
			}
			w.word.Store(1)
			testutil.MustNoError(<-unmapped)
			if err := p.StreamSynchronize(p.stream); err != nil {
				return "waits for the number, and the work: " + said(err)
			}
			return "waits for the work"
		}},
	{step: "T13", asked: "unmapping under a kernel that runs", ask: func(p *process) string {
		p.enter()
		m, toil := p.create(0), p.kernel("toil")
		toil.launch(1, 1, uint64(m.base), onDevice[uint64](p, 4e6, 1e3)) // some seconds
		begin := time.Now()
		unmapped := p.MemUnmap(m.base, m.size)
		took := time.Since(begin)
		return fmt.Sprintf("cuMemUnmap: %s, after %v; the kernel: %s", said(unmapped),
			took.Round(time.Microsecond), said(p.StreamSynchronize(p.stream)))
	}},
	{step: "T13", asked: "the same memory, which a peer has mapped, for the peer", want: "goes on",
		ask: func(p *process) string {
			p.enter()
			m, o := p.create(1), p.start("unmap")
			o.say("unmap", p.export(m))
			o.hear()
			return p.goesOn(m.base)
		}},
	{step: "T13", asked: "a kernel that writes where nothing is", want: "CUDA_ERROR_ILLEGAL_ADDRESS (700)",
		ask: func(p *process) string {
			p.enter()
			return p.stray(p.create(0), 1<<40)
		}},
	{step: "T13", asked: "a kernel that writes to a word at an odd place",
		want: "CUDA_ERROR_MISALIGNED_ADDRESS (716)", ask: func(p *process) string {
			p.enter()
			return p.stray(p.create(0), 1)
		}},
	{step: "T13", asked: "a write through a mapping to read", want: "CUDA_ERROR_ILLEGAL_ADDRESS (700)",
		ask: func(p *process) string {
			p.enter()
			m := p.create(1)
			testutil.MustNoError(p.MemSetAccess(m.base, m.size,
				[]cudriver.AccessDesc{cudriver.Access(0, cudriver.AccessRead)}))
			return p.stray(m, 0)
		}},
	{step: "T13", asked: "the next call after an illegal address", want: "CUDA_ERROR_ILLEGAL_ADDRESS (700)",
		ask: func(p *process) string {
			p.enter()
			p.stray(p.create(0), 1<<40)
			_, err := p.MemAlloc(4)
			return said(err)
		}},
	{step: "T13", asked: "a peer, on memory of which another process writes beyond the end", want: "goes on",
		ask: func(p *process) string {
			p.enter()
			m, o := p.create(1), p.start("stray")
			o.say("stray", p.export(m))
			if text, _ := o.hear(); text != "CUDA_ERROR_ILLEGAL_ADDRESS (700)" {
				return "the other one: " + text
			}
			return p.goesOn(m.base)
		}},
	{step: "T13", asked: "the same peer, when the other process is gone", want: "goes on",
		ask: func(p *process) string {
			p.enter()
			m, o := p.create(1), p.start("stray")
			o.say("stray", p.export(m))
			o.hear()
			o.kill()
			return p.goesOn(m.base)
		}},
}

// stray has a kernel write so many bytes behind the beginning of memory, and says what comes of it.
func (p *process) stray(m *shared, off uint64) string {
	p.kernel("toil").launch(1, 1, uint64(m.base)+off, 1)
	return said(p.StreamSynchronize(p.stream))
}

func init() {
	helpers["stray"] = func(p *process) {
		p.enter()
		_, f, err := p.line.hear()
		testutil.MustNoError(err)
		testutil.MustNoError(p.line.say(p.stray(p.importFile(f), 1<<40)))
		p.line.hear() // alive, with a context that is lost
	}
	helpers["unmap"] = func(p *process) {
		p.enter()
		_, f, err := p.line.hear()
		testutil.MustNoError(err)
		p.end(p.importFile(f))
		testutil.MustNoError(p.line.say("unmapped"))
		p.line.hear()
	}
}
