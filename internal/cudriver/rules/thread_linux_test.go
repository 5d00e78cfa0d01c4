package rules_test

import (
	"fmt"
	"runtime"
	"strconv"

	"github.com/shoal-mp/shoal/internal/cudriver"
)

var threads = []rule{
	{step: "T10", asked: "a call before cuInit", want: "CUDA_ERROR_NOT_INITIALIZED (3)", ask: func(p *process) string {
		_, err := p.DeviceCount()
		return said(err)
	}},
	{step: "T10", asked: "a call from a thread without a context", want: "CUDA_ERROR_INVALID_CONTEXT (201)",
		ask: func(p *process) string {
			p.enter()
			answer := make(chan error)
			go func() {
				runtime.LockOSThread() // the thread ends with the goroutine
				_, err := p.MemAlloc(4)
				answer <- err
			}()
			return said(<-answer)
		}},
	{step: "T10", asked: "a context that is retained, and not current",
		want: "CUDA_ERROR_INVALID_CONTEXT (201)", ask: func(p *process) string {
			must(p.Init())
			get(p.PrimaryCtxRetain(0))
			_, err := p.MemAlloc(4)
			return said(err)
		}},
	{step: "T10", asked: "a primary context that was released by all, while it is current",
		want: "CUDA_ERROR_CONTEXT_IS_DESTROYED (709)", ask: func(p *process) string {
			p.enter()
			must(p.PrimaryCtxRelease(0))
			_, err := p.MemAlloc(4)
			return said(err)
		}},
	{step: "T10", asked: "another process's context, made current", want: "CUDA_ERROR_INVALID_CONTEXT (201)",
		ask: func(p *process) string {
			p.enter()
			o := p.start("show context")
			defer o.kill()
			text, _ := o.hear()
			theirs := get(strconv.ParseUint(text, 10, 64))
			if theirs == uint64(p.ctx) {
				return "both processes have the same number"
			}
			return said(p.CtxSetCurrent(cudriver.Context(theirs)))
		}},
}

func init() {
	helpers["show context"] = func(p *process) {
		p.enter()
		must(p.line.say(fmt.Sprint(uint64(p.ctx))))
		p.line.hear() // until it is killed
	}
}
