package cuda_test

import (
	"errors"
	"testing"

	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// on returns the memory of a tensor on a device.
func on(t *tensor.Tensor) *cuda.Memory { return cuda.MemoryOf(t) }

func TestPin_DevicesReachThePages(t *testing.T) {
	onDevices(t, needed(2), 64*mib)
	dev := device(t, "cuda:0").(*cuda.Device)
	other := forRank(t, 1).(*cuda.Device)
	x, err := tensor.NewShared(tensor.Float32, 64, 32)
	testutil.NoError(t, err)
	row := x.Select(0, 1)
	pinned, err := dev.Pin(row)
	testutil.NoError(t, err)
	again, err := other.Pin(x) // the same pages, once for all devices
	testutil.NoError(t, err)
	if pinned.Device() != tensor.Device(dev) || pinned.Numel() != 32 || again.Device() != tensor.Device(other) {
		t.Errorf("on %v and %v", pinned.Device(), again.Device())
	}
	testutil.NoError(t, on(pinned).Fill(pinned.Offset()*4, pinned.Nbytes(), []byte{0, 0, 0x80, 0x3f}))
	testutil.NoError(t, dev.Synchronize())
	if tensor.At[float32](x, 0, 31) != 0 || tensor.At[float32](x, 1, 0) != 1 ||
		tensor.At[float32](x, 1, 31) != 1 || tensor.At[float32](x, 2, 0) != 0 {
		t.Errorf("the host sees:\n%v", x)
	}
	pinned.AddScalarInPlace(2) // by a kernel, where it lies
	testutil.NoError(t, dev.Synchronize())
	if tensor.At[float32](x, 0, 31) != 0 || tensor.At[float32](x, 1, 0) != 3 ||
		tensor.At[float32](x, 1, 31) != 3 || tensor.At[float32](x, 2, 0) != 0 {
		t.Errorf("after a kernel the host sees:\n%v", x)
	}
	y, err := tensor.On(dev).Zeros(tensor.Float32, 32)
	testutil.NoError(t, err)
	hold(true)
	testutil.NoError(t, on(y).Copy(0, on(pinned), pinned.Offset()*4, y.Nbytes())) // returns, though nothing is done
	hold(false)
	if got := onHost(t, y); got[0] != 3 || got[31] != 3 {
		t.Errorf("copied: %v", got)
	}
	testutil.NoError(t, errors.Join(x.Close(), row.Close())) // the pinned ones keep the pages
	testutil.NoError(t, on(again).Fill(0, 4, []byte{7}))
	testutil.NoError(t, other.Synchronize())
	testutil.NoError(t, errors.Join(pinned.Close(), again.Close(), y.Close()))
	wantPinned(t, "all is closed", 0)
}

// Pages that one device has pinned are copied to another one and from it by the driver's copy that
// takes memory of the host: that between contexts is for memory of devices.
func TestPin_PagesOfOneDeviceAreCopiedByAnother(t *testing.T) {
	onDevices(t, needed(2), 64*mib)
	near, far := device(t, "cuda:0").(*cuda.Device), forRank(t, 1).(*cuda.Device)
	x, err := tensor.NewShared(tensor.Float32, 64, 32)
	testutil.NoError(t, err)
	pinned, err := near.Pin(x)
	testutil.NoError(t, err)
	pages, err := far.Pin(x)
	testutil.NoError(t, err)
	there, err := tensor.On(far).Zeros(tensor.Float32, 64, 32)
	testutil.NoError(t, err)
	testutil.NoError(t, on(pinned).Fill(0, x.Nbytes(), []byte{0, 0, 0x80, 0x3f})) // which the copy waits for
	testutil.NoError(t, on(there).Copy(0, on(pinned), 0, x.Nbytes()))
	if got := onHost(t, there); got[0] != 1 || got[64*32-1] != 1 {
		t.Errorf("copied to the other device: %v and %v", got[0], got[64*32-1])
	}
	testutil.NoError(t, on(there).Fill(0, x.Nbytes(), []byte{0, 0, 0, 0x40}))
	testutil.NoError(t, errors.Join(on(pinned).Copy(0, on(there), 0, x.Nbytes()), far.Synchronize()))
	if first, last := tensor.At[float32](x, 0, 0), tensor.At[float32](x, 63, 31); first != 2 || last != 2 {
		t.Errorf("copied from the other device, the host sees %v and %v", first, last)
	}
	testutil.NoError(t, on(pages).Copy(0, on(pinned), 128, 128)) // both are the host's
	testutil.NoError(t, errors.Join(pinned.Close(), pages.Close(), there.Close(), x.Close()))
	wantPinned(t, "all is closed", 0)
}

func TestPin_NeedsWholePages(t *testing.T) {
	onDevices(t, 1, 64*mib)
	dev := device(t, "cuda").(*cuda.Device)
	small, err := tensor.NewShared(tensor.Float32, 4)
	testutil.NoError(t, err)
	there, err := tensor.On(dev).Zeros(tensor.Float32, 4096)
	testutil.NoError(t, err)
	for name, x := range map[string]*tensor.Tensor{"on the heap": tensor.New(tensor.Float32, 4096),
		"of 16 bytes": small, "on the device": there} {
		if _, err := dev.Pin(x); !errors.Is(err, cuda.ErrNotPageable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	testutil.NoError(t, errors.Join(small.Close(), there.Close()))
}

func TestStream_GoesOnBesideTheDevices(t *testing.T) {
	onDevices(t, needed(2), 64*mib)
	dev := device(t, "cuda").(*cuda.Device)
	x, err := tensor.On(dev).Full(tensor.Float32, 5, 100)
	testutil.NoError(t, err)
	y, err := tensor.On(dev).Zeros(tensor.Float32, 100)
	testutil.NoError(t, err)
	testutil.NoError(t, dev.Synchronize())
	s, err := dev.NewStream()
	testutil.NoError(t, err)
	hold(true)
	testutil.NoError(t, on(x).Fill(0, x.Nbytes(), []byte{0, 0, 0x80, 0x3f}))
	own, err := dev.Stream()
	testutil.NoError(t, err)
	filled, err := own.Record()
	testutil.NoError(t, err)
	testutil.NoError(t, s.Wait(filled))
	testutil.NoError(t, s.Copy(y, x))
	copied, err := s.Record()
	testutil.NoError(t, err)
	testutil.NoError(t, own.Wait(copied))
	testutil.NoError(t, on(x).Fill(0, x.Nbytes(), []byte{0})) // not before it was copied
	for _, e := range []*cuda.Event{filled, copied} {
		if done, err := e.Done(); done && cuda.Simulator() != nil || err != nil {
			t.Errorf("it has come to pass while the device is held: %v", err)
		}
	}
	hold(false)
	testutil.NoError(t, copied.Synchronize())
	if done, err := copied.Done(); !done || err != nil {
		t.Errorf("waited for, it has not come to pass: %v", err)
	}
	if got := onHost(t, y); got[0] != 1 || got[99] != 1 {
		t.Errorf("copied: %v", got)
	}
	far, err := tensor.On(forRank(t, 1)).Zeros(tensor.Float32, 100)
	testutil.NoError(t, err)
	if err := s.Copy(far, x); cuda.Count() > 1 && !errors.Is(err, cuda.ErrDevice) {
		t.Errorf("to another device: %v", err)
	}
	testutil.NoError(t, errors.Join(own.Close(), s.Close(), x.Close(), y.Close(), far.Close()))
	testutil.NoError(t, own.Synchronize()) // it goes on
}

func TestDevice_CopiesThroughTheHostWhereNoOtherWayIs(t *testing.T) {
	for name, apart := range map[string]bool{"near": false, "apart": true} {
		t.Run(name, func(t *testing.T) {
			onDevices(t, 2, 64*mib)
			// three times what goes through at once
			x, err := tensor.On(device(t, "cuda:0")).Zeros(tensor.Float32, 3*mib)
			testutil.NoError(t, err)
			if s := cuda.Simulator(); s != nil {
				s.Part(apart)
			}
			testutil.NoError(t, on(x).Fill(4<<20, 8<<20, []byte{0, 0, 0x80, 0x3f}))
			y, err := x.ToDevice(device(t, "cuda:1"))
			testutil.NoError(t, err)
			got := onHost(t, y)
			if got[0] != 0 || got[mib-1] != 0 || got[mib] != 1 || got[3*mib-1] != 1 {
				t.Errorf("%v %v %v %v", got[0], got[mib-1], got[mib], got[3*mib-1])
			}
			testutil.NoError(t, errors.Join(x.Close(), y.Close()))
		})
	}
}
