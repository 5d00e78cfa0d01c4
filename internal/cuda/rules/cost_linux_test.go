package rules_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/test/testutil"
)

var costs = []rule{
	{step: "T11", asked: "microseconds of each call for shared memory, medians of 5", ask: func(p *process) string {
		p.enter()
		var all []string
		for _, size := range onDevice(p, []uint64{2 * mib, 64 * mib, 1024 * mib}, []uint64{2 * mib, 64 * mib}) {
			all = append(all, fmt.Sprintf("%d MiB: %s", size/mib, p.segmentCosts(size)))
		}
		return strings.Join(all, "\n    ")
	}},
	{step: "T11", asked: "microseconds of each call for legacy memory, first and again", ask: func(p *process) string {
		o, h, _ := p.lender()
		defer o.kill()
		var c costsOf
		var a cudriver.Ptr
		for _, name := range []string{"open", "open while it is open"} {
			c.time(name, func() { a = testutil.Must(p.IPCOpenMemHandle(h)) })
		}
		for _, name := range []string{"close", "close the last"} {
			c.time(name, func() { testutil.MustNoError(p.IPCCloseMemHandle(a)) })
		}
		return c.String()
	}},
	{step: "T11", asked: "microseconds of each call for events and numbers, medians of 5",
		ask: func(p *process) string {
			p.enter()
			o, m, e := p.signaller()
			defer o.kill()
			own := testutil.Must(p.EventCreate(cudriver.EventInterprocess | cudriver.EventDisableTiming))
			var c costsOf
			for range 5 {
				c.time("record", func() { testutil.MustNoError(p.EventRecord(own, p.stream)) })
				c.time("wait for another process's event",
					func() { testutil.MustNoError(p.StreamWaitEvent(p.stream, e)) })
				c.time("synchronize", func() { testutil.MustNoError(p.StreamSynchronize(p.stream)) })
				c.time("write a number", func() { testutil.MustNoError(p.StreamWriteValue32(p.stream, m.base, 1)) })
				c.time("wait for a number", func() { testutil.MustNoError(p.StreamWaitValue32(p.stream, m.base, 1)) })
				c.time("synchronize", func() { testutil.MustNoError(p.StreamSynchronize(p.stream)) })
			}
			return c.String()
		}},
}

// segmentCosts is how long each call takes in the life of a segment.
func (p *process) segmentCosts(size uint64) string {
	var c costsOf
	prop := cudriver.Pinned(0, true)
	access := []cudriver.AccessDesc{cudriver.Access(0, cudriver.AccessReadWrite)}
	for range 5 {
		var m, again shared
		m.size = size
		c.time("create", func() { m.handle = testutil.Must(p.MemCreate(size, prop)) })
		c.time("reserve", func() { m.base = testutil.Must(p.MemAddressReserve(size, 0)) })
		c.time("map", func() { testutil.MustNoError(p.MemMap(m.base, size, m.handle)) })
		c.time("set access", func() { testutil.MustNoError(p.MemSetAccess(m.base, size, access)) })
		f := p.export(&m)
		c.time("export", func() { testutil.MustNoError(p.export(&m).Close()) })
		c.time("import", func() { again.handle = testutil.Must(p.importHandle(f)) })
		testutil.MustNoError(f.Close())
		testutil.MustNoError(p.MemRelease(again.handle))
		c.time("unmap", func() { testutil.MustNoError(p.MemUnmap(m.base, size)) })
		c.time("free addresses", func() { testutil.MustNoError(p.MemAddressFree(m.base, size)) })
		c.time("release", func() { testutil.MustNoError(p.MemRelease(m.handle)) })
	}
	return c.String()
}

// costsOf are times of calls, in the order in which they came first.
type costsOf struct {
	names []string
	times map[string][]time.Duration
}

func (c *costsOf) time(name string, call func()) {
	begin := time.Now()
	call()
	took := time.Since(begin)
	if c.times == nil {
		c.times = map[string][]time.Duration{}
	}
	if c.times[name] == nil {
		c.names = append(c.names, name)
	}
	c.times[name] = append(c.times[name], took)
}

func (c *costsOf) String() string {
	var all []string
	for _, name := range c.names {
		all = append(all, fmt.Sprintf("%s %.1f", name,
			float64(slices.Sorted(slices.Values(c.times[name]))[len(c.times[name])/2])/1e3))
	}
	return strings.Join(all, ", ")
}
