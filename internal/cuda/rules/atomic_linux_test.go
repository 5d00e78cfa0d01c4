package rules_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A crowd is the threads that add: how many blocks of how many, and how often each.
type crowd struct {
	blocks, threads uint32
	times           uint64
}

func (c crowd) adds() uint64 { return uint64(c.blocks) * uint64(c.threads) * c.times }

func crowdOf(p *process) crowd { return onDevice(p, crowd{1024, 256, 64}, crowd{4, 32, 2}) }

// lost says how many additions to one word are not there.
func (p *process) lost(way string, c crowd, at cudriver.Ptr) string {
	p.kernel("add_"+way).launch(c.blocks, c.threads, uint64(at), 0, c.times)
	if n := testutil.Must(p.read(at)); uint64(n) != c.adds() {
		return fmt.Sprintf("%d of %d are lost", c.adds()-uint64(n), c.adds())
	}
	return "none is lost"
}

var atomics = []rule{
	{step: "T2", asked: "additions of four processes at once to one word, of scope system",
		want: "none is lost", ask: func(p *process) string {
			p.enter()
			m, c := p.create(0), crowdOf(p)
			f := p.export(m)
			var all []*other
			for range 4 {
				o := p.start("add")
				o.say("add", f)
				o.hear()
				all = append(all, o)
			}
			for _, o := range all { // all of them are ready
				o.say("now")
			}
			for _, o := range all {
				o.hear()
			}
			if n, want := uint64(testutil.Must(p.read(m.base))), 4*c.adds(); n != want {
				return fmt.Sprintf("%d of %d are lost", want-n, want)
			}
			return "none is lost"
		}},
	{step: "T9", asked: "additions of one block to one word, of scope block", want: "none is lost",
		ask: func(p *process) string {
			p.enter()
			c := crowdOf(p)
			return p.lost("block", crowd{1, c.threads, c.times}, p.create(0).base)
		}},
	{step: "T9", asked: "additions of all blocks to one word, of scope device", want: "none is lost",
		ask: func(p *process) string {
			p.enter()
			return p.lost("device", crowdOf(p), p.create(0).base)
		}},
	{step: "T9", asked: "additions of all blocks to one word of the host's memory, of scope system",
		want: "none is lost", ask: func(p *process) string {
			p.enter()
			c := crowdOf(p)
			return p.lost("system", crowd{c.blocks, c.threads, 1}, p.hostMemory(2*mib))
		}},
	{step: "T9", asked: "additions of all blocks to one word, read and written by each thread alone",
		ask: func(p *process) string {
			p.enter()
			return p.lost("thread", crowdOf(p), p.create(0).base)
		}},
	{step: "T9", asked: "additions a second, by scope", ask: func(p *process) string {
		p.enter()
		c := crowdOf(p)
		apart := uint64(c.blocks*c.threads - 1)
		once := crowd{c.blocks, c.threads, 1} // what goes over the bus takes long
		var all []string
		for _, way := range []string{"thread", "block", "device", "system"} {
			all = append(all, fmt.Sprintf("%-6s  %s", way, p.rates(way, c, p.create(0).base, apart)))
		}
		all = append(all, "system, the host's memory  "+p.rates("system", once, p.hostMemory(2*mib), apart))
		return strings.Join(all, "\n    ")
	}},
}

func init() {
	helpers["add"] = func(p *process) {
		p.enter()
		_, f, err := p.line.hear()
		testutil.MustNoError(err)
		m, add, c := p.importFile(f), p.kernel("add_system"), crowdOf(p)
		testutil.MustNoError(p.line.say("ready"))
		_, _, err = p.line.hear()
		testutil.MustNoError(err)
		add.launch(c.blocks, c.threads, uint64(m.base), 0, c.times)
		testutil.MustNoError(p.StreamSynchronize(p.stream))
		testutil.MustNoError(p.line.say("done"))
		p.line.hear()
	}
}

// hostMemory returns the device's address of memory of the host, which is 0.
func (p *process) hostMemory(n int) cudriver.Ptr {
	b := make([]byte, n)
	testutil.MustNoError(p.MemHostRegister(b, cudriver.HostPortable|cudriver.HostDeviceMap))
	kept = append(kept, b)
	return testutil.Must(p.MemHostGetDevicePointer(b))
}

// kept is what the device knows the address of.
var kept [][]byte

// rates says how many additions a second there are to words apart, and to one: the median of five
// launches after a first, by the device's clock.
func (p *process) rates(way string, c crowd, at cudriver.Ptr, apart uint64) string {
	add := p.kernel("add_" + way)
	begin, end := testutil.Must(p.EventCreate(0)), testutil.Must(p.EventCreate(0))
	rate := func(mask uint64) float64 {
		var ms []float32
		for i := range 6 {
			testutil.MustNoError(p.EventRecord(begin, p.stream))
			add.launch(c.blocks, c.threads, uint64(at), mask, c.times)
			testutil.MustNoError(p.EventRecord(end, p.stream))
			testutil.MustNoError(p.EventSynchronize(end))
			if i > 0 {
				ms = append(ms, testutil.Must(p.EventElapsedTime(begin, end)))
			}
		}
		slices.Sort(ms)
		return float64(c.adds()) / float64(ms[len(ms)/2]) * 1e3
	}
	return fmt.Sprintf("%.3g to %d words, %.3g to one", rate(apart), apart+1, rate(0))
}
