package cuda_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/cuda/sim"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestMain(m *testing.M) { shoaltest.TestMain(m) }

const mib = 1 << 20

// patient is watched where a Python has to load its libraries.
func patient(t testing.TB) context.Context {
	t.Helper()
	return within(t, 5*time.Minute)
}

func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), d, errors.New("the test hangs"))
	t.Cleanup(cancel)
	return ctx
}

// real has the tests run on the devices of this machine, but for those that need what only
// simulated ones can do.
var real = flag.Bool("cuda.real", false, "on the GPUs of this machine, not on simulated ones")

// A machine knows how many bytes of its devices are in use, by any process.
type machine interface {
	Used(device int) (int64, error)
}

// gpus are the devices of this machine, and what was free of them before.
type gpus []int

func (g gpus) Used(device int) (int64, error) {
	d, err := cuda.Get(device)
	if err != nil {
		return 0, err
	}
	free, _, err := d.MemInfo()
	return int64(g[device] - free), err
}

// ofTheDriver is what a real driver may keep for itself, as for the code of kernels: half of the
// smallest segment.
const ofTheDriver = 32 * mib

// onDevices gives this process and its children n devices of size bytes, or GPUs, and a domain in
// which nothing may be left, nor on the devices.
func onDevices(t testing.TB, n int, size int64) machine {
	t.Helper()
	if !*real {
		return simulate(t, n, size)
	}
	if have := cuda.Count(); have < n {
		t.Skipf("%d devices are needed, and there are %d: %v", n, have, cuda.Available())
	}
	g := make(gpus, n)
	for i := range g {
		d, err := cuda.Get(i)
		testutil.NoError(t, err)
		g[i], _, err = d.MemInfo()
		testutil.NoError(t, err)
	}
	inDomain(t, func() {
		testutil.NoError(t, errors.Join(cuda.EmptyCache(), cuda.Reset())) // kernels go with their context
		for i := range g {
			comesTo(t, g, i, 0)
		}
		testutil.NoError(t, cuda.Reset())
	})
	return g
}

// simulate is onDevices for tests that hold devices, or have them fail.
func simulate(t testing.TB, n int, size int64) *sim.Devices {
	t.Helper()
	if *real {
		t.Skip("needs simulated devices")
	}
	devices, err := sim.Create(n, size)
	testutil.NoError(t, err)
	t.Setenv(cuda.SimulateKey, strings.Join(devices.Paths(), ","))
	t.Cleanup(func() { testutil.NoError(t, devices.Close()) })
	inDomain(t, func() {
		testutil.NoError(t, cuda.Reset())
		for i := range n {
			comesTo(t, devices, i, 0)
		}
	})
	return devices
}

// onDevice is onDevices with one, which may be small, and which it returns.
func onDevice(t testing.TB) tensor.Device {
	t.Helper()
	onDevices(t, 1, 64*mib)
	return device(t, "cuda")
}

// needed is how many devices a test gets that would like n, and makes do with the one of this
// machine.
func needed(n int) int {
	if *real {
		return max(1, min(n, cuda.Count()))
	}
	return n
}

// hold has a simulated device do nothing, so that what is queued has not been done, or go on. A
// real one does what it does.
func hold(on bool) {
	if s := cuda.Simulator(); s != nil {
		s.Hold(on)
	}
}

// simulated is simulate with one small device, which it returns.
func simulated(t testing.TB) tensor.Device {
	t.Helper()
	simulate(t, 1, 64*mib)
	return device(t, "cuda")
}

// inDomain runs the test in a domain of its own, in which nothing may be left after end.
func inDomain(t testing.TB, end func()) {
	t.Helper()
	d, err := arena.New(arena.Options{Budget: 64 * mib})
	testutil.NoError(t, err)
	before := arena.Current()
	arena.SetDefault(d)
	t.Cleanup(func() {
		end()
		eventually(t, func() string { return fmt.Sprintf("%d blocks are left", d.Stats().Blocks) }, "0 blocks are left")
		arena.SetDefault(before)
		testutil.NoError(t, d.Close())
	})
}

// eventually waits until f says what is wanted, as it does when all who died have been reaped. A
// test that has failed leaves what it leaves.
func eventually(t testing.TB, f func() string, want string) {
	t.Helper()
	if t.Failed() {
		return
	}
	testutil.EventuallyNoError(t, func() error {
		if got := f(); got != want {
			return fmt.Errorf("%s; want %s", got, want)
		}
		return nil
	})
}

// comesTo waits until so many bytes of a device are in use.
func comesTo(t testing.TB, devices machine, device int, want int64) {
	t.Helper()
	say := func(n int64, err error) string {
		return fmt.Sprintf("%d bytes of device %d are in use, %v", n, device, err)
	}
	eventually(t, func() string {
		n, err := devices.Used(device)
		if *real && max(n-want, want-n) < ofTheDriver {
			n = want
		}
		return say(n, err)
	}, say(want, nil))
}

// device returns one.
func device(t testing.TB, text string) tensor.Device {
	t.Helper()
	d, err := tensor.ParseDevice(text)
	testutil.NoError(t, err)
	return d
}

// forRank returns the one of a rank.
func forRank(t testing.TB, rank int) tensor.Device {
	t.Helper()
	d, err := cuda.ForRank(rank)
	testutil.NoError(t, err)
	return d
}

// onHost returns the elements of a tensor.
func onHost(t testing.TB, x *tensor.Tensor) []float32 {
	t.Helper()
	h, err := x.CPU()
	testutil.NoError(t, err)
	dense := h.Contiguous()
	defer h.Close()
	defer dense.Close()
	return append([]float32{}, tensor.Data[float32](dense)...)
}
