package rules_test

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/shoal-mp/shoal/test/testutil"
)

var deaths = []rule{
	{step: "T4", asked: "memory whose exporter was killed while the descriptor was under way",
		want: "reads 7", ask: func(p *process) string {
			p.enter()
			maker := p.start("make and die")
			maker.cmd.Wait() // and what it has sent lies in the socket
			_, f := maker.hear()
			return p.reads(p.importFile(f).base)
		}},
	{step: "T4", asked: "memory whose exporter was killed after the import", want: "reads 7",
		ask: func(p *process) string {
			p.enter()
			maker := p.start("make")
			_, f := maker.hear()
			m := p.importFile(f)
			maker.kill()
			return p.reads(m.base)
		}},
	{step: "T4", asked: "free memory when an exporter and an importer of 96 MiB were killed",
		want: "the memory is free again", ask: func(p *process) string {
			p.enter()
			p.end(p.create(1)) // what the driver takes for itself at first
			before := p.free()
			maker, reader := p.start("make much"), p.start("read much")
			_, f := maker.hear()
			reader.say("read", f)
			if answer, _ := reader.hear(); answer != "reads 7" {
				return "before it: " + answer
			}
			testutil.MustNoError(f.Close())
			if held := before - p.free(); held < much/2 {
				return fmt.Sprintf("before it only %d bytes are taken", held)
			}
			maker.kill()
			reader.kill()
			return when(func() bool { return before-p.free() < much/2 }, "the memory is free again",
				"the memory is not free")
		}},
	{step: "T4", asked: "what the kernels of a killed process still write when it has been waited for",
		want: "nothing", ask: func(p *process) string {
			p.enter()
			m, toiler := p.create(0), p.start("toil for long")
			toiler.say("toil", p.export(m))
			for testutil.Must(p.read(m.base)) == 0 {
				time.Sleep(time.Millisecond)
			}
			toiler.kill()
			first := testutil.Must(p.read(m.base))
			time.Sleep(200 * time.Millisecond) // in which a kernel that runs writes a hundred thousand times
			if second := testutil.Must(p.read(m.base)); second != first {
				return fmt.Sprintf("%d, and later %d", first, second)
			}
			return "nothing"
		}},
}

// much is so much memory that half of it is more than a driver takes for itself, of which nobody
// knows how much it is: so a question of what is free has an answer.
const much = 96 * mib

// free returns the bytes of the device that nobody has.
func (p *process) free() int64 {
	free, _, err := p.MemGetInfo()
	testutil.MustNoError(err)
	return int64(free)
}

func init() {
	helpers["make much"] = func(p *process) {
		p.enter()
		m := p.createOf(7, much)
		testutil.MustNoError(p.line.say("made", p.export(m)))
		p.line.hear()
	}
	helpers["read much"] = func(p *process) {
		p.enter()
		_, f, err := p.line.hear()
		testutil.MustNoError(err)
		m := p.mapped(testutil.Must(p.importHandle(f)), much)
		testutil.MustNoError(f.Close())
		testutil.MustNoError(p.line.say(p.reads(m.base)))
		p.line.hear()
	}
	helpers["make"] = func(p *process) {
		p.enter()
		m := p.create(7)
		testutil.MustNoError(p.line.say("made", p.export(m)))
		p.line.hear()
	}
	helpers["make and die"] = func(p *process) {
		p.enter()
		testutil.MustNoError(p.line.say("made", p.export(p.create(7))))
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	helpers["toil for long"] = func(p *process) {
		p.enter()
		_, f, err := p.line.hear()
		testutil.MustNoError(err)
		m, toil := p.importFile(f), p.kernel("toil")
		for range 100 {
			toil.launch(1, 1, uint64(m.base), onDevice[uint64](p, 1e6, 1e3))
		}
		p.line.hear()
	}
}
