package cuda

import (
	"fmt"

	"github.com/shoal-mp/shoal/cuda/internal/ptx"
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/tensor"
)

// Unfold implements [device.Computer]: it queues kernels that copy the elements under each
// position of the window from the images in to out (im2col). Errors are as for [engine.Map].
func (d engine) Unfold(out, in tensorOperand, w device.Window) error {
	kind, ok := moved[in.DType.Size()]
	if !ok {
		return d.lacksWindow("Unfold", in.DType)
	}
	return d.launchWindow(ptx.Unfold(kind), in.Shape, w, out, in)
}

// Fold implements [device.Computer]: it queues kernels that add up the elements of in that
// belong to the same element of the images out (col2im). Errors are as for [engine.Map].
func (d engine) Fold(out, in tensorOperand, w device.Window) error {
	k, ok := ptx.Fold(types[in.DType])
	if !ok || types[in.DType] == "" {
		return d.lacksWindow("Fold", in.DType)
	}
	return d.launchWindow(k, out.Shape, w, out, in)
}

// MaxPool implements [device.Computer]: it queues kernels that set out to the maximum of each
// window of in, and at to the index of that maximum. Errors are as for [engine.Map].
func (d engine) MaxPool(out, at, in tensorOperand, w device.Window) error {
	kind := types[in.DType]
	if kind == "" {
		return d.lacksWindow("MaxPool", in.DType)
	}
	return d.launchWindow(ptx.MaxPool(kind), in.Shape, w, out, in, at)
}

func (d *Device) lacksWindow(what string, dt tensor.DType) error {
	return fmt.Errorf("%w: %s of %v on %v", tensor.ErrUnsupported, what, dt, d)
}

// launchWindow launches a kernel with a thread for each element of the first operand. images is
// the shape of the images. The planes of each operand must be contiguous. launchWindow splits
// the launch if there are too many planes. The error wraps [tensor.ErrUnsupported] if a plane
// has too many elements.
func (d *Device) launchWindow(k ptx.Kernel, images []int, w device.Window, operands ...tensorOperand) error {
	height, width := images[len(images)-2], images[len(images)-1]
	planes := 1
	for _, n := range images[:len(images)-2] {
		planes *= n
	}
	outH, outW := w.Out(height, width)
	perPlane, largest := make([]int, len(operands)), 0
	var words []uint64
	for i, o := range operands {
		seen, err := d.kernelOperand(o)
		if err != nil {
			return err
		}
		words = append(words, seen.word)
		perPlane[i] = 1
		for _, n := range o.Shape {
			perPlane[i] *= n
		}
		perPlane[i] /= max(planes, 1)
		largest = max(largest, perPlane[i])
	}
	for _, pair := range [][2]int{{height, width}, {outH, outW}, w.Size, w.Stride, w.Padding} {
		words = append(words, uint64(pair[0]), uint64(pair[1]))
	}
	for _, n := range []int{height, width, outH, outW, w.Size[0], w.Size[1], w.Stride[0], w.Stride[1]} {
		words = append(words, ptx.Reciprocal(max(n, 1)))
	}
	if largest > most {
		return fmt.Errorf("%w: windows of images of %d by %d on %v", tensor.ErrUnsupported, height, width, d)
	}
	for done := 0; done < planes && perPlane[0] > 0; {
		n := min(planes-done, most/largest)
		grid, block := gridFor(n * perPlane[0])
		if err := d.launchKernel(k, "window", grid, block,
			append([]uint64{uint64(n * perPlane[0])}, words...)); err != nil {
			return err
		}
		done += n
		for i, o := range operands {
			words[i] += uint64(n * perPlane[i] * o.DType.Size())
		}
	}
	return nil
}
