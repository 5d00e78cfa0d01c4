package kernel

import (
	"math"
	"unsafe"
)

func lstm[F Float](n int, i, f, g, o, cell, next, state *F) {
	in, forget, fresh, out := unsafe.Slice(i, n), unsafe.Slice(f, n), unsafe.Slice(g, n), unsafe.Slice(o, n)
	cells, nexts, states := unsafe.Slice(cell, n), unsafe.Slice(next, n), unsafe.Slice(state, n)
	for j := range in {
		in[j], forget[j] = F(logistic(float64(in[j]))), F(logistic(float64(forget[j])))
		fresh[j], out[j] = F(math.Tanh(float64(fresh[j]))), F(logistic(float64(out[j])))
		nexts[j] = forget[j]*cells[j] + in[j]*fresh[j]
		states[j] = out[j] * F(math.Tanh(float64(nexts[j])))
	}
}

func lstmBackward[F Float](n int, i, f, g, o, cell, next, dstate, dcell *F) {
	in, forget, fresh, out := unsafe.Slice(i, n), unsafe.Slice(f, n), unsafe.Slice(g, n), unsafe.Slice(o, n)
	cells, nexts, dstates, dcells := unsafe.Slice(cell, n), unsafe.Slice(next, n), unsafe.Slice(dstate, n),
		unsafe.Slice(dcell, n)
	for j, dh := range dstates {
		squashed := F(math.Tanh(float64(nexts[j])))
		dc := dcells[j] + dh*out[j]*(1-squashed*squashed)
		dcells[j] = dc * forget[j]
		out[j] = dh * squashed * out[j] * (1 - out[j])
		forget[j] = dc * cells[j] * forget[j] * (1 - forget[j])
		in[j], fresh[j] = dc*fresh[j]*in[j]*(1-in[j]), dc*in[j]*(1-fresh[j]*fresh[j])
	}
}

func gru[F Float](n int, xr, xz, xn, r, z, own, fresh, last, state *F) {
	rs, zs, owns := unsafe.Slice(r, n), unsafe.Slice(z, n), unsafe.Slice(own, n)
	news, lasts, states := unsafe.Slice(fresh, n), unsafe.Slice(last, n), unsafe.Slice(state, n)
	for j := range rs {
		rs[j], zs[j] = F(logistic(float64(*elementPtr(xr, j)+rs[j]))), F(logistic(float64(*elementPtr(xz, j)+zs[j])))
		news[j] = F(math.Tanh(float64(*elementPtr(xn, j) + rs[j]*owns[j])))
		states[j] = news[j] + zs[j]*(lasts[j]-news[j])
	}
}

func gruBackward[F Float](n int, r, z, own, fresh, last, dr, dz, dn, dstate *F) {
	rs, zs, owns := unsafe.Slice(r, n), unsafe.Slice(z, n), unsafe.Slice(own, n)
	news, lasts, dstates := unsafe.Slice(fresh, n), unsafe.Slice(last, n), unsafe.Slice(dstate, n)
	for j, dh := range dstates {
		open := rs[j]
		d := dh * (1 - zs[j]) * (1 - news[j]*news[j])
		dstates[j] = dh * zs[j]
		zs[j] = dh * (lasts[j] - news[j]) * zs[j] * (1 - zs[j])
		rs[j] = d * owns[j] * open * (1 - open)
		owns[j] = d * open
		*elementPtr(dr, j), *elementPtr(dz, j), *elementPtr(dn, j) = rs[j], zs[j], d
	}
}
