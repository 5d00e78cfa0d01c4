package cuda

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"

	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/tensor"
)

// tensors accesses the memory of tensors.
var tensors = device.OfTensors[*tensor.Tensor, tensor.DType]()

// A bare copies device memory between two buffers with plain driver calls. newBare allocates
// them, and the caller must call close.
type bare struct {
	cudriver.Driver
	dev      cudriver.Device
	ctx      cudriver.Context
	from, to cudriver.Ptr
	stream   cudriver.Stream
	size     uint64
}

func newBare(dev *cuda.Device, size int) (b *bare, err error) {
	b = &bare{size: uint64(size)}
	if b.Driver, err = cudriver.Open(); err != nil {
		return nil, err
	}
	if err = b.Init(); err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(strings.TrimPrefix(dev.String(), "cuda:"))
	if err != nil {
		return nil, err
	}
	if b.dev, err = b.DeviceGet(number); err != nil {
		return nil, err
	}
	if b.ctx, err = b.PrimaryCtxRetain(b.dev); err != nil {
		return nil, err
	}
	err = b.runInContext(func() error {
		var failed [3]error
		b.from, failed[0] = b.MemAlloc(b.size)
		b.to, failed[1] = b.MemAlloc(b.size)
		b.stream, failed[2] = b.StreamCreate(cudriver.StreamNonBlocking)
		return errors.Join(failed[:]...)
	})
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *bare) runInContext(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := b.CtxSetCurrent(b.ctx); err != nil {
		return err
	}
	return f()
}

func (b *bare) measure(_ context.Context, rounds int) error {
	return b.runInContext(func() error {
		for range rounds {
			if err := b.MemcpyAsync(b.to, b.from, b.size, b.stream); err != nil {
				return err
			}
		}
		return b.StreamSynchronize(b.stream)
	})
}

func (b *bare) close() error {
	err := b.runInContext(func() (err error) {
		for _, p := range []cudriver.Ptr{b.from, b.to} {
			if p != 0 {
				err = errors.Join(err, b.MemFree(p))
			}
		}
		if b.stream != 0 {
			err = errors.Join(err, b.StreamDestroy(b.stream))
		}
		return err
	})
	return errors.Join(err, b.PrimaryCtxRelease(b.dev))
}
