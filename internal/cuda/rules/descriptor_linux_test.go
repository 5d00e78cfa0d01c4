package rules_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/test/testutil"
)

var descriptors = []rule{
	{step: "T3", asked: "the descriptor that the driver exports", ask: func(p *process) string {
		p.enter()
		fd := testutil.Must(p.MemExport(p.create(0).handle))
		inherited := "is inherited by programs that are started: whoever exports has to see to it"
		if closesOnExec(fd) {
			inherited = "is close-on-exec"
		}
		f := os.NewFile(uintptr(fd), "memory")
		info := testutil.Must(f.Stat())
		device := info.Sys().(*syscall.Stat_t).Rdev
		return fmt.Sprintf("%s; mode %v, device %d:%d", inherited, info.Mode(), device>>8&0xfff, device&0xff)
	}},
	{step: "T3", asked: "the same, through the one way by which Shoal exports", want: "close-on-exec",
		ask: func(p *process) string {
			p.enter()
			f := p.export(p.create(0))
			defer f.Close()
			if !closesOnExec(int(f.Fd())) {
				return "inherited"
			}
			return "close-on-exec"
		}},
	{step: "T6", asked: "import in the process that exported", want: "reads 7", ask: func(p *process) string {
		p.enter()
		return p.reads(p.importFile(p.export(p.create(7))).base)
	}},
	{step: "T6", asked: "export of what was imported",
		want: "a helper: cuMemExportToShareableHandle: CUDA_ERROR_INVALID_VALUE (1)", ask: func(p *process) string {
			p.enter()
			second := p.start("pass on")
			defer second.kill()
			second.say("pass on", p.export(p.create(7)))
			answer, _ := second.hear()
			return answer
		}},
	{step: "T6", asked: "export of memory that was not made for it", want: "CUDA_ERROR_INVALID_VALUE (1)",
		ask: func(p *process) string {
			p.enter()
			prop := cudriver.Pinned(0, false)
			size := testutil.Must(p.MemGetAllocationGranularity(prop, cudriver.GranularityMinimum))
			_, err := p.MemExport(testutil.Must(p.MemCreate(size, prop)))
			return said(err)
		}},
	{step: "T6", asked: "import of a descriptor of something else", want: "CUDA_ERROR_UNKNOWN (999)",
		ask: func(p *process) string {
			p.enter()
			_, err := p.importHandle(testutil.Must(os.Open("/dev/null")))
			return said(err)
		}},
	{step: "T6", asked: "memory of half a granularity", want: "CUDA_ERROR_INVALID_VALUE (1)",
		ask: func(p *process) string {
			p.enter()
			prop := cudriver.Pinned(0, true)
			_, err := p.MemCreate(testutil.Must(p.MemGetAllocationGranularity(prop, cudriver.GranularityMinimum))/2,
				prop)
			return said(err)
		}},
	{step: "T6", asked: "a peer's memory that this device was given access to, by cuMemcpyPeerAsync",
		want: "reads 7", needs: 2, ask: func(p *process) string {
			p.enter()
			far := testutil.Must(p.PrimaryCtxRetain(1))
			testutil.MustNoError(p.CtxSetCurrent(far))
			prop := cudriver.Pinned(1, true)
			m := p.mapped(testutil.Must(p.MemCreate(2*mib, prop)), 2*mib)
			both := []cudriver.AccessDesc{cudriver.Access(0, cudriver.AccessReadWrite),
				cudriver.Access(1, cudriver.AccessReadWrite)}
			testutil.MustNoError(p.MemSetAccess(m.base, m.size, both))
			s := testutil.Must(p.StreamCreate(cudriver.StreamNonBlocking))
			testutil.MustNoError(p.MemsetD8Async(m.base, 7, m.size, s))
			testutil.MustNoError(p.StreamSynchronize(s))
			testutil.MustNoError(p.CtxSetCurrent(p.ctx))
			near := p.create(0)
			testutil.MustNoError(p.MemcpyPeerAsync(near.base, p.ctx, m.base, far, m.size, p.stream))
			return p.reads(near.base)
		}},
}

// closesOnExec looks at the flags of a descriptor.
func closesOnExec(fd int) bool {
	text := string(testutil.Must(os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))))
	_, after, _ := strings.Cut(text, "flags:")
	var flags int
	testutil.Must(fmt.Sscanf(after, "%o", &flags))
	return flags&syscall.O_CLOEXEC != 0
}

func init() {
	helpers["pass on"] = func(p *process) {
		p.enter()
		_, f, err := p.line.hear()
		testutil.MustNoError(err)
		testutil.MustNoError(p.line.say("passed on", p.export(p.importFile(f))))
		p.line.hear()
	}
}
