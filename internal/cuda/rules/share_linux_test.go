package rules_test

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/shoal-mp/shoal/test/testutil"
)

var shares = []rule{
	{step: "T12", asked: "another process, while a stream of this one waits for a number", want: "goes on",
		ask: func(p *process) string {
			p.enter()
			m, flag, o := p.create(1), p.create(0), p.start("work")
			testutil.MustNoError(p.StreamWaitValue32(p.stream, flag.base, 1))
			o.say("work", p.export(m))
			answer, _ := o.hear()
			return answer
		}},
	{step: "T12", asked: "what a context takes of the device's memory", ask: func(p *process) string {
		p.enter()
		alone := p.free()
		var all []string
		for n := range 3 {
			o := p.start("work")
			defer o.kill()
			o.say("work", p.export(p.create(1)))
			o.hear()
			all = append(all, fmt.Sprintf("%d others: %d MiB", n+1, (alone-p.free())>>20))
		}
		return strings.Join(all, ", ") + ", with 2 MiB of memory for each"
	}},
	{step: "T12",
		asked: "kernels a second, of one thread each, by how many processes launch them: more with more would be " +
			"beside each other, as many are by turns", ask: func(p *process) string {
			p.enter()
			var all []string
			for _, n := range []int{1, 2, 4} {
				all = append(all, fmt.Sprintf("%d: %d", n, p.toilTogether(n)))
			}
			return strings.Join(all, ", ")
		}},
}

// toilTogether returns the kernels a second of n processes together.
func (p *process) toilTogether(n int) (sum int) {
	var all []*other
	for range n {
		o := p.start("toil")
		defer o.kill()
		o.hear()
		all = append(all, o)
	}
	for _, o := range all { // all of them are ready
		o.say("now")
	}
	for _, o := range all {
		text, _ := o.hear()
		sum += testutil.Must(strconv.Atoi(text))
	}
	return sum
}

func init() {
	helpers["work"] = func(p *process) {
		p.enter()
		_, f, err := p.line.hear()
		testutil.MustNoError(err)
		m := p.importFile(f)
		p.kernel("toil").launch(1, 1, uint64(m.base), 1)
		testutil.MustNoError(p.line.say(p.goesOn(m.base)))
		p.line.hear()
	}
	helpers["toil"] = func(p *process) {
		p.enter()
		m, toil := p.create(0), p.kernel("toil")
		testutil.MustNoError(p.line.say("ready"))
		_, _, err := p.line.hear()
		testutil.MustNoError(err)
		count, begin := 0, time.Now()
		for time.Since(begin) < onDevice(p, 2*time.Second, 10*time.Millisecond) {
			toil.launch(1, 1, uint64(m.base), onDevice[uint64](p, 1000, 10))
			testutil.MustNoError(p.StreamSynchronize(p.stream))
			count++
		}
		testutil.MustNoError(p.line.say(fmt.Sprint(int(float64(count) / time.Since(begin).Seconds()))))
		p.line.hear()
	}
}
