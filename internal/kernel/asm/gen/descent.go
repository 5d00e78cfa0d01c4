package main

import (
	"strings"

	"github.com/mmcloughlin/avo/reg"
)

func (v vector) descend() {
	v.text("Descend", "n int, p, grad, buf *F, lr, decay, keep, take F")
	v.doc("Descend",
		"computes a step of gradient descent: buf = keep·buf + take·(grad + decay·p), and then p = p - lr·buf.")
	lr, decay, keep, take := v.scalar("lr"), v.scalar("decay"), v.scalar("keep"), v.scalar("take")
	v.flat([]string{"p", "grad", "buf"}, func(f *flat) {
		p, d, buf := f.read("p"), f.read("grad"), f.read("buf")
		f.fma231(p, decay, d)
		f.mul(keep, buf, buf)
		f.fma231(take, d, buf)
		f.write(buf, "buf")
		f.less231(buf, lr, p)
		f.write(p, "p")
	})
	v.end()
}

func (v vector) adam() {
	numbers := []string{"rate", "root", "fresh1", "keep2", "fresh2", "eps", "decay", "shrink"}
	v.text("Adam", "n int, p, grad, mean, square *F, "+strings.Join(numbers, ", ")+" F")
	v.doc("Adam",
		"computes a step of Adam. With g = grad + decay·p it is mean = mean + fresh1·(g - mean), square = "+
			"keep2·square + fresh2·g², and then p = p - shrink·p - rate·mean/(root·√square + eps).")
	c := v.scalars(numbers)
	v.flat([]string{"p", "grad", "mean", "square"}, func(f *flat) {
		p, g, mean, change := f.read("p"), f.read("grad"), f.read("mean"), f.fresh()
		f.fma231(p, c["decay"], g)
		f.sub(mean, g, change)
		f.fma231(change, c["fresh1"], mean)
		f.write(mean, "mean")
		square := f.read("square")
		f.mul(c["keep2"], square, square)
		f.mul(g, g, g)
		f.fma231(g, c["fresh2"], square)
		f.write(square, "square")
		f.sqrt(square, square)
		f.fma213(c["eps"], c["root"], square)
		f.mul(c["rate"], mean, mean)
		f.div(square, mean, mean)
		f.fma231(p, c["shrink"], mean)
		f.sub(mean, p, p)
		f.write(p, "p")
	})
	v.end()
}

func (v vector) rmsprop() {
	numbers := []string{"rate", "kept", "fresh", "eps", "decay"}
	v.text("RMSprop", "n int, p, grad, square *F, "+strings.Join(numbers, ", ")+" F")
	v.doc("RMSprop",
		"computes a step of RMSprop. With g = grad + decay·p it is square = kept·square + fresh·g², and then "+
			"p = p - rate·g/(√square + eps).")
	c := v.scalars(numbers)
	v.flat([]string{"p", "grad", "square"}, func(f *flat) {
		p, g, square, fresh := f.read("p"), f.read("grad"), f.read("square"), f.fresh()
		f.fma231(p, c["decay"], g)
		f.mul(g, g, fresh)
		f.mul(c["kept"], square, square)
		f.fma231(fresh, c["fresh"], square)
		f.write(square, "square")
		f.sqrt(square, square)
		f.add(c["eps"], square, square)
		f.mul(c["rate"], g, g)
		f.div(square, g, g)
		f.sub(g, p, p)
		f.write(p, "p")
	})
	v.end()
}

// scalars emits the loads of parameters of type F, broadcast to all lanes, and returns the
// registers by name.
func (v vector) scalars(names []string) map[string]reg.VecVirtual {
	all := map[string]reg.VecVirtual{}
	for _, name := range names {
		all[name] = v.scalar(name)
	}
	return all
}
