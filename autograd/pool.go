package autograd

import "github.com/shoal-mp/shoal/tensor"

// AvgPool2d returns the mean of each window of images x, (N, C, H, W): (N, C, H', W'), rounded down as in Conv2d. Padding
// counts as zeros.
func AvgPool2d(x *Var, o Window) *Var {
	want("AvgPool2d", "an image batch (N, C, H, W)", x, 4)
	if o.Stride == [2]int{} {
		o.Stride = o.Size
	}
	checkWindow("AvgPool2d", o.Size, o, x.Shape())
	var out [2]int
	for i := range out {
		out[i] = (x.t.Dim(2+i)+2*o.Padding[i]-o.Size[i])/o.Stride[i] + 1
	}
	return averaged{o, x.t, out}.down(x)
}

// averaged is a pooling of images like x.
type averaged struct {
	Window
	x   *tensor.Tensor
	out [2]int
}

// down returns the mean of each window. Its derivative is up, and that of up is down.
func (a averaged) down(x *Var) *Var {
	return unary("AvgPool2d", x, a.means(x.t), nil, a.spread).twice(func(_, dy *Var) []*Var { return of(a.up(dy)) })
}

// up gives each element of a window its share.
func (a averaged) up(y *Var) *Var {
	return unary("AvgPool2d", y, a.spread(y.t).Clone(), nil, a.means).twice(func(_, dx *Var) []*Var { return of(a.down(dx)) })
}

func (a averaged) share() float64 { return 1 / float64(a.Size[0]*a.Size[1]) }

func (a averaged) means(x *tensor.Tensor) *tensor.Tensor {
	padded, image := a.pad(a.x)
	image.CopyFrom(x)
	y := x.NewZeros(x.DType(), x.Dim(0), x.Dim(1), a.out[0], a.out[1])
	a.taps(padded, a.out, func(tap *tensor.Tensor) { y.Add(tap) })
	return y.MulScalar(a.share())
}

func (a averaged) spread(dy *tensor.Tensor) *tensor.Tensor {
	padded, image := a.pad(a.x)
	a.taps(padded, a.out, func(tap *tensor.Tensor) { tap.Axpy(a.share(), dy) })
	return image
}

// pad returns zeros with room for an image like x and its padding, and the part of them that is the image.
func (o Window) pad(x *tensor.Tensor) (padded, image *tensor.Tensor) {
	h, w := x.Dim(2), x.Dim(3)
	padded = x.NewZeros(x.DType(), x.Dim(0), x.Dim(1), h+2*o.Padding[0], w+2*o.Padding[1])
	return padded, padded.Narrow(2, o.Padding[0], h).Narrow(3, o.Padding[1], w)
}

// taps calls f with the views of all elements that are at one place of their window, for each place.
func (o Window) taps(padded *tensor.Tensor, out [2]int, f func(tap *tensor.Tensor)) {
	for i := range o.Size[0] {
		rows := padded.Slice(2, i, i+(out[0]-1)*o.Stride[0]+1, o.Stride[0])
		for j := range o.Size[1] {
			f(rows.Slice(3, j, j+(out[1]-1)*o.Stride[1]+1, o.Stride[1]))
		}
	}
}
