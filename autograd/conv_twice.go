package autograd

import (
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// The two derivatives of a convolution, for images and for filters, are bilinear, like the
// convolution itself. Therefore the derivatives of each of the three are the other two.

// convolve is Conv2d without a bias. The caller must have checked the shape.
func convolve(s kernel.ConvShape, x, w *Var) *Var {
	return dispatch("Conv2d", x, conv2d[float32], conv2d[float64], conv2dOn)(s, x, w, nil)
}

func conv2dTwice(y, dy *Var) derivatives {
	s, x, w := y.ensurePlan().conv, y.inputs[0], y.inputs[1]
	var dx, dw *Var
	if x.needsGradient() {
		dx = convImages(s, w, dy)
	}
	if w.needsGradient() {
		dw = convFilters(s, w.Shape(), x, dy)
	}
	if len(y.inputs) < 3 {
		return derivativesOf(dx, dw)
	}
	return derivativesOf(dx, dw, Sum(dy, 0, 2, 3))
}

// convImages returns the derivative of the convolution s with respect to the images, as a
// differentiable function of the filters w and of dy.
func convImages(s kernel.ConvShape, w, dy *Var) *Var {
	v := wrapResult("Conv2d", imageGradient(s, w.t, dy.t), w, dy)
	if v.needs {
		v.saveTensors(w.t, dy.t)
		v.backward = func(dx *tensor.Tensor) {
			if w.needsGradient() {
				w.addGradient(filterGradient(s, w.Shape(), dx, dy.t))
			}
			if dy.needsGradient() {
				dy.addGradient(convolve(s, NoGrad(dx), NoGrad(w.t)).t)
			}
		}
	}
	return v.setRule(func(_, dx *Var) derivatives {
		return derivativesOf(convFilters(s, w.Shape(), dx, dy), convolve(s, dx, w))
	})
}

// convFilters returns the derivative of the convolution s with respect to the filters, which have
// the given shape, as a differentiable function of the images x and of dy.
func convFilters(s kernel.ConvShape, shape []int, x, dy *Var) *Var {
	v := wrapResult("Conv2d", filterGradient(s, shape, x.t, dy.t), x, dy)
	if v.needs {
		v.saveTensors(x.t, dy.t)
		v.backward = func(dw *tensor.Tensor) {
			if x.needsGradient() {
				x.addGradient(imageGradient(s, dw, dy.t))
			}
			if dy.needsGradient() {
				dy.addGradient(convolve(s, NoGrad(x.t), NoGrad(dw)).t)
			}
		}
	}
	return v.setRule(func(_, dw *Var) derivatives { return derivativesOf(convImages(s, dw, dy), convolve(s, x, dw)) })
}

func imageGradient(s kernel.ConvShape, w, dy *tensor.Tensor) *tensor.Tensor {
	dx := dy.NewEmpty(dy.DType(), s.N, s.C, s.H, s.W)
	w, dy = w.Contiguous(), dy.Contiguous()
	dispatch("Conv2d", NoGrad(dy), convBackward[float32], convBackward[float64], convBackwardOn)(s, nil, w, dy,
		dx, nil)
	return dx
}

func filterGradient(s kernel.ConvShape, shape []int, x, dy *tensor.Tensor) *tensor.Tensor {
	dw := dy.NewZeros(dy.DType(), shape...)
	x, dy = x.Contiguous(), dy.Contiguous()
	dispatch("Conv2d", NoGrad(dy), convBackward[float32], convBackward[float64], convBackwardOn)(s, x, nil, dy,
		nil, dw)
	return dw
}

// convBackwardOn implements convBackward on a device.
func convBackwardOn(s kernel.ConvShape, x, w, dy, dx, dw *tensor.Tensor) {
	if dx != nil {
		u := unfoldingOf(s, w, dy)
		u.fold(w.View(s.OutC, u.patch), dy.View(s.N, s.OutC, u.places), dx)
	}
	if dw != nil {
		u := unfoldingOf(s, x, dy)
		u.correlate(x, dy.View(s.N, s.OutC, u.places), dw)
	}
}

// convBackward sets dx to the derivative computed from w and dy, and adds the derivative computed
// from x and dy to dw. dx or dw may be nil.
func convBackward[F kernel.Float](s kernel.ConvShape, x, w, dy, dx, dw *tensor.Tensor) {
	scratch := scratches.Get().(*kernel.Scratch)
	defer scratches.Put(scratch)
	kernel.Conv2dBackward(s, dataOf[F](x), dataOf[F](w), dataOf[F](dy), dataOf[F](dx), dataOf[F](dw), nil, scratch)
	keepAlive(NoGrad(x), NoGrad(w), NoGrad(dy))
}
