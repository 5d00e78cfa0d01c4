package pool

import (
	"context"
	"testing"

	"github.com/shoal-mp/shoal/internal/codec"
)

var tiny = Register("tiny", func(_ context.Context, x int) (int, error) { return x * x, nil })

func BenchmarkPath(b *testing.B) {
	callPlan := must(codec.PlanOf[call]())
	replyPlan := must(codec.PlanOf[reply]())
	var e codec.Encoder
	var d codec.Decoder
	buf := make([]byte, 0, 256)
	in := []int{7}
	b.ReportAllocs()
	for b.Loop() {
		args, _ := packValues(tiny.in, in)
		e.Reset(buf)
		callPlan.Encode(&e, call{id: 7, fn: "tiny", n: 1, args: args})
		e.Done(true)
		d.Reset(e.Message(), nil)
		c, _ := callPlan.Decode(&d)
		d.Done(true)
		r := performCall(b.Context(), c)
		e.Reset(buf)
		replyPlan.Encode(&e, r)
		e.Done(true)
		d.Reset(e.Message(), nil)
		r, _ = replyPlan.Decode(&d)
		d.Done(true)
		unpackValues(tiny.out, r.results, in)
		in[0] = 7
	}
}
