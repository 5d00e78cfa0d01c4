package rules_test

import "runtime"

import "github.com/shoal-mp/shoal/test/testutil"

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
			testutil.MustNoError(p.Init())
			testutil.Must(p.PrimaryCtxRetain(0))
			_, err := p.MemAlloc(4)
			return said(err)
		}},
	{step: "T10", asked: "a primary context that was released by all, while it is current",
		want: "CUDA_ERROR_CONTEXT_IS_DESTROYED (709)", ask: func(p *process) string {
			p.enter()
			testutil.MustNoError(p.PrimaryCtxRelease(0))
			_, err := p.MemAlloc(4)
			return said(err)
		}},
}
