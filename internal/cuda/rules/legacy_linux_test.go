package rules_test

import (
	"encoding/hex"
	"fmt"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/test/testutil"
)

var legacy = []rule{
	{step: "T5", asked: "freeing twice", want: "CUDA_ERROR_INVALID_VALUE (1)", ask: func(p *process) string {
		p.enter()
		a := testutil.Must(p.MemAlloc(4096))
		testutil.MustNoError(p.MemFree(a))
		return said(p.MemFree(a))
	}},
	{step: "T5", asked: "freeing what is within an allocation", want: "CUDA_ERROR_INVALID_VALUE (1)",
		ask: func(p *process) string {
			p.enter()
			return said(p.MemFree(testutil.Must(p.MemAlloc(4096)) + 256))
		}},
	{step: "T5", asked: "the handle of memory of cuMemCreate", want: "CUDA_ERROR_INVALID_VALUE (1)",
		ask: func(p *process) string {
			p.enter()
			_, err := p.IPCGetMemHandle(p.create(0).base)
			return said(err)
		}},
	{step: "T5", asked: "opening in the process that made the handle",
		want: "CUDA_ERROR_INVALID_CONTEXT (201)", ask: func(p *process) string {
			p.enter()
			_, err := p.IPCOpenMemHandle(testutil.Must(p.IPCGetMemHandle(testutil.Must(p.MemAlloc(2 * mib)))))
			return said(err)
		}},
	{step: "T5", asked: "opening a handle of nothing", want: "CUDA_ERROR_INVALID_VALUE (1)",
		ask: func(p *process) string {
			p.enter()
			_, err := p.IPCOpenMemHandle(cudriver.IPCHandle{1})
			return said(err)
		}},
	{step: "T5", asked: "opening twice", want: "the same address, and it is closed twice",
		ask: func(p *process) string {
			o, h, _ := p.lender()
			defer o.kill()
			first, second := testutil.Must(p.IPCOpenMemHandle(h)), testutil.Must(p.IPCOpenMemHandle(h))
			if first != second {
				return "two addresses"
			}
			testutil.MustNoError(p.IPCCloseMemHandle(first))
			if a := p.reads(first); a != "reads 7" {
				return "closed once it " + a
			}
			if err := p.IPCCloseMemHandle(first); err != nil {
				return "closed again: " + said(err)
			}
			return "the same address, and it is closed twice"
		}},
	{step: "T5", asked: "a neighbour of 4 KiB in the memory that a handle opens", ask: func(p *process) string {
		o, h, gap := p.lender()
		defer o.kill()
		return fmt.Sprintf("%d bytes from it: %s", gap, p.reads(testutil.Must(p.IPCOpenMemHandle(h))+cudriver.Ptr(gap)))
	}},
	{step: "T5", asked: "memory that is open while its owner frees it", ask: func(p *process) string {
		o, h, _ := p.lender()
		defer o.kill()
		a := testutil.Must(p.IPCOpenMemHandle(h))
		o.say("free")
		o.hear()
		return p.reads(a)
	}},
	{step: "T5", asked: "memory that is open while its owner is killed", want: "reads 7", ask: func(p *process) string {
		o, h, _ := p.lender()
		a := testutil.Must(p.IPCOpenMemHandle(h))
		o.kill()
		return p.reads(a)
	}},
	{step: "T5", asked: "opening by another device, which reaches the memory", want: "reads 7", needs: 2,
		ask: func(p *process) string {
			o, h, _ := p.lender()
			defer o.kill()
			p.enterFar()
			return p.reads(testutil.Must(p.IPCOpenMemHandle(h)))
		}},
	{step: "T5", asked: "a kernel of another device that was given no access",
		want: "CUDA_ERROR_ILLEGAL_ADDRESS (700)", needs: 2, ask: func(p *process) string {
			p.enter()
			a := testutil.Must(p.MemAlloc(4096))
			p.enterFar()
			return p.stray(&shared{base: a}, 0)
		}},
	{step: "T5", asked: "opening what its owner has freed", ask: func(p *process) string {
		o, h, _ := p.lender()
		defer o.kill()
		o.say("free")
		o.hear()
		_, err := p.IPCOpenMemHandle(h)
		return said(err)
	}},
	{step: "T5", asked: "an event of several processes that has times", want: "CUDA_ERROR_INVALID_VALUE (1)",
		ask: func(p *process) string {
			p.enter()
			_, err := p.EventCreate(cudriver.EventInterprocess)
			return said(err)
		}},
	{step: "T5", asked: "waiting for an event that another process has recorded", want: "reads 7",
		ask: func(p *process) string {
			p.enter()
			o, m, e := p.signaller()
			defer o.kill()
			testutil.MustNoError(p.StreamWaitEvent(p.stream, e))
			return p.reads(m.base)
		}},
	{step: "T5", asked: "waiting for an event whose process was killed before it came", want: "waits for ever",
		ask: func(p *process) string {
			p.enter()
			o := p.start("promise and die")
			text, _ := o.hear()
			var h cudriver.IPCHandle
			hex.Decode(h[:], []byte(text))
			e := testutil.Must(p.IPCOpenEventHandle(h))
			o.kill()
			if err := p.EventQuery(e); said(err) != said(cudriver.Check("", cudriver.ErrorNotReady)) {
				return "asked, it is " + said(err)
			}
			testutil.MustNoError(p.StreamWaitEvent(p.stream, e))
			return p.idle(p.stream, "waits for ever")
		}},
}

// lender enters, and starts a process that lends 4 KiB of legacy memory with a neighbour, and frees
// it when it is told to.
func (p *process) lender() (o *other, h cudriver.IPCHandle, neighbour int64) {
	p.enter()
	o = p.start("lend")
	text, _ := o.hear()
	hex.Decode(h[:], []byte(text[:128]))
	testutil.Must(fmt.Sscan(text[128:], &neighbour))
	return o, h, neighbour
}

// enterFar makes the context of the second device current, and a stream there.
func (p *process) enterFar() {
	testutil.MustNoError(p.CtxSetCurrent(testutil.Must(p.PrimaryCtxRetain(1))))
	p.stream = testutil.Must(p.StreamCreate(cudriver.StreamNonBlocking))
}

// signaller starts a process that fills memory and records an event behind that.
func (p *process) signaller() (*other, *shared, cudriver.Event) {
	o, m := p.start("signal"), p.create(0)
	o.say("fill", p.export(m))
	text, _ := o.hear()
	var h cudriver.IPCHandle
	hex.Decode(h[:], []byte(text))
	return o, m, testutil.Must(p.IPCOpenEventHandle(h))
}

func init() {
	helpers["lend"] = func(p *process) {
		p.enter()
		a, b := testutil.Must(p.MemAlloc(4096)), testutil.Must(p.MemAlloc(4096))
		p.fill(a, 7, 4096)
		p.fill(b, 8, 4096)
		h := testutil.Must(p.IPCGetMemHandle(a))
		testutil.MustNoError(p.line.say(fmt.Sprintf("%x %d", h[:], int64(b-a))))
		if _, _, err := p.line.hear(); err == nil {
			testutil.MustNoError(p.MemFree(a))
			testutil.MustNoError(p.line.say("freed"))
			p.line.hear()
		}
	}
	helpers["signal"] = func(p *process) {
		p.enter()
		_, f, err := p.line.hear()
		testutil.MustNoError(err)
		m := p.importFile(f)
		e := testutil.Must(p.EventCreate(cudriver.EventInterprocess | cudriver.EventDisableTiming))
		testutil.MustNoError(p.MemsetD8Async(m.base, 7, m.size, p.stream))
		testutil.MustNoError(p.EventRecord(e, p.stream))
		h := testutil.Must(p.IPCGetEventHandle(e))
		testutil.MustNoError(p.line.say(hex.EncodeToString(h[:])))
		p.line.hear()
	}
}
