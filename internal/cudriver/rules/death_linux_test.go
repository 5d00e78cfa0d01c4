package rules_test

import (
	"fmt"
	"os"
	"syscall"
	"time"
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
	{step: "T4", asked: "free memory when an exporter and an importer were killed", want: "as before",
		ask: func(p *process) string {
			p.enter()
			p.end(p.create(1)) // what the driver takes for itself at first
			before, _, err := p.MemGetInfo()
			must(err)
			maker, reader := p.start("make"), p.start("read")
			_, f := maker.hear()
			reader.say("read", f)
			reader.hear()
			must(f.Close())
			maker.kill()
			reader.kill()
			var free uint64
			for end := time.Now().Add(patience / 4); ; time.Sleep(time.Millisecond) {
				if free, _, err = p.MemGetInfo(); err != nil || free >= before || time.Now().After(end) {
					break
				}
			}
			must(err)
			if free < before {
				return fmt.Sprintf("%d bytes less", before-free)
			}
			return "as before"
		}},
	{step: "T4", asked: "what the kernels of a killed process still write when it has been waited for",
		want: "nothing", ask: func(p *process) string {
			p.enter()
			m, toiler := p.create(0), p.start("toil for long")
			toiler.say("toil", p.export(m))
			for get(p.read(m.base)) == 0 {
				time.Sleep(time.Millisecond)
			}
			toiler.kill()
			first := get(p.read(m.base))
			time.Sleep(200 * time.Millisecond) // in which a kernel that runs writes a hundred thousand times
			if second := get(p.read(m.base)); second != first {
				return fmt.Sprintf("%d, and later %d", first, second)
			}
			return "nothing"
		}},
}

func init() {
	helpers["make"] = func(p *process) {
		p.enter()
		m := p.create(7)
		must(p.line.say("made", p.export(m)))
		p.line.hear()
	}
	helpers["make and die"] = func(p *process) {
		p.enter()
		must(p.line.say("made", p.export(p.create(7))))
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	helpers["toil for long"] = func(p *process) {
		p.enter()
		_, f, err := p.line.hear()
		must(err)
		m, toil := p.importFile(f), p.kernel("toil")
		for range 100 {
			toil.launch(1, 1, uint64(m.base), onDevice[uint64](p, 1e6, 1e3))
		}
		p.line.hear()
	}
}
