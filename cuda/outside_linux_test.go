package cuda_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/devicetest"
	"github.com/shoal-mp/shoal/test/testutil"
)

// panics returns with what f panics.
func panics(f func()) (said string) {
	defer func() {
		if p := recover(); p != nil {
			said = fmt.Sprint(p)
		}
	}()
	f()
	return ""
}

// selects wants rows of tensors by an index, and an error of an index that is out of range: of
// short rows, for which the gather reports it, and of long ones, whose indices are looked at
// before.
func selects(t *testing.T, dev tensor.Device) {
	t.Helper()
	for _, cols := range []int{3, 64} {
		selectsRows(t, dev, cols)
	}
}

func selectsRows(t *testing.T, dev tensor.Device, cols int) {
	t.Helper()
	host := tensor.RandN(tensor.Float32, tensor.NewGenerator(1), 6, cols)
	x := devicetest.On(t, dev, host)
	defer x.Close()
	for _, c := range []struct {
		index []int64
		out   string
	}{
		{index: []int64{5, 0, 0, 5}}, {index: []int64{0, 6, 0}, out: "6"}, {index: []int64{-7}, out: "-7"},
		{index: []int64{2, -1}, out: "-1"},
		{index: []int64{1, 1 << 62}, out: "4611686018427387904"}, {index: []int64{3}},
	} {
		there := devicetest.On(t, dev, tensor.FromSlice(c.index, len(c.index)))
		said := panics(func() {
			y := tensor.IndexSelect(x, 0, there)
			devicetest.Same(t, y, tensor.IndexSelect(host, 0, tensor.FromSlice(c.index, len(c.index))), 0)
			testutil.NoError(t, y.Close())
		})
		testutil.NoError(t, there.Close())
		if c.out != "" {
			c.out = "index " + c.out + " is out of range [0, 6)"
		}
		if !strings.Contains(said, c.out) || said != "" && c.out == "" {
			t.Errorf("rows of %d, index %v: %q, want %q", cols, c.index, said, c.out)
		}
	}
}

func TestOutside_WorksWhereNoPageIsRegistered(t *testing.T) {
	dev := simulated(t)
	cuda.Simulator().Fail("cuMemHostRegister", 1, cudriver.ErrorNotPermitted)
	selects(t, dev)
	wantPinned(t, "by words of the device", 0)
	collected(t, 1)
}

func TestOutside_LooksAtManyIndicesAtOnce(t *testing.T) {
	dev := onDevice(t)
	var g sync.WaitGroup
	for range 8 {
		g.Go(func() { selects(t, dev) })
	}
	g.Wait()
	wantPinned(t, "by words of the host", 1)
	collected(t, 8) // goroutines that allocate at once have segments of their own
}

// What is queued meanwhile may panic, and more often than there are words.
func TestOutside_GivesItsWordBackWhereItsCallerPanics(t *testing.T) {
	dev := onDevice(t)
	index := devicetest.On(t, dev, tensor.FromSlice([]int64{9}, 1))
	for range 2000 {
		said := panics(func() {
			devicetest.ComputerOn(dev).Outside(devicetest.OperandOf(index), 0, 6, func() { panic("no") })
		})
		if said != "no" {
			t.Fatalf("it panics with %q", said)
		}
	}
	v, found, err := devicetest.ComputerOn(dev).Outside(devicetest.OperandOf(index), 0, 6, func() {})
	testutil.NoError(t, err)
	if v != 9 || !found {
		t.Errorf("%d, %v, want 9", v, found)
	}
	if n := cuda.SlotsInUse(dev); n != 0 {
		t.Errorf("%d slots are not returned", n)
	}
	selects(t, dev)
	testutil.NoError(t, index.Close())
	collected(t, 1)
}

// A kernel that cannot be launched must not use up a slot.
func TestOutside_ReturnsItsSlotIfTheLaunchFails(t *testing.T) {
	dev := simulated(t)
	index := devicetest.On(t, dev, tensor.FromSlice([]int64{9}, 1))
	check := func() (found bool, err error) {
		_, found, err = devicetest.ComputerOn(dev).Outside(devicetest.OperandOf(index), 0, 6, func() {})
		return found, err
	}
	if found, err := check(); !found || err != nil {
		t.Fatalf("found %v, error %v", found, err)
	}
	cuda.Simulator().Fail("cuLaunchKernel", 1, cudriver.ErrorOutOfMemory)
	if _, err := check(); err == nil {
		t.Error("the launch did not fail")
	}
	if n := cuda.SlotsInUse(dev); n != 0 {
		t.Errorf("%d slots are not returned", n)
	}
	testutil.NoError(t, index.Close())
	collected(t, 1)
}
