package sim

import (
	"sync/atomic"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
)

// StreamWriteValue32 queues a write of v to p, which must be 4-byte aligned; otherwise the
// error is ErrorInvalidValue. Other processes may wait for the value.
func (d *Driver) StreamWriteValue32(s cudriver.Stream, p cudriver.Ptr, v uint32) error {
	return d.value("cuStreamWriteValue32", s, p, d.queueWork, func(word *atomic.Uint32) cudriver.Result {
		word.Store(v)
		return cudriver.Success
	})
}

// StreamWaitValue32 makes the stream wait until int32(value at p - v) >= 0. p must be 4-byte
// aligned; otherwise the error is ErrorInvalidValue.
func (d *Driver) StreamWaitValue32(s cudriver.Stream, p cudriver.Ptr, v uint32) error {
	return d.value("cuStreamWaitValue32", s, p, d.queueWait, func(word *atomic.Uint32) cudriver.Result {
		if int32(word.Load()-v) < 0 {
			return cudriver.ErrorNotReady
		}
		return cudriver.Success
	})
}

func (d *Driver) value(call string, s cudriver.Stream, p cudriver.Ptr,
	queue func(string, cudriver.Stream, work) error, f func(word *atomic.Uint32) cudriver.Result) error {
	if p%4 != 0 {
		return cudriver.Check(call, cudriver.ErrorInvalidValue)
	}
	return queue(call, s, func(c *context) cudriver.Result {
		b := d.bytesAt(c, p, 4, cudriver.AccessReadWrite)
		if b == nil {
			return cudriver.ErrorIllegalAddress
		}
		return f((*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(b))))
	})
}
