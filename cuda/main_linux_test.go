package cuda_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/internal/cudriver/sim"
	"github.com/shoal-mp/shoal/shm"
	"github.com/shoal-mp/shoal/tensor"
)

func TestMain(m *testing.M) { shoal.TestMain(m) }

const mib = 1 << 20

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func watched(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("the test hangs"))
	t.Cleanup(cancel)
	return ctx
}

// simulate gives this process and its children n devices of size bytes, and a domain in which nothing may be left, nor on the devices.
func simulate(t testing.TB, n int, size int64) *sim.Devices {
	t.Helper()
	devices, err := sim.Create(n, size)
	check(t, err)
	t.Setenv(cuda.SimulateKey, strings.Join(devices.Paths(), ","))
	d, err := shm.New(shm.Options{Budget: 64 * mib})
	check(t, err)
	before := shm.Current()
	shm.SetDefault(d)
	t.Cleanup(func() {
		check(t, cuda.Reset())
		for i := range n {
			comesTo(t, devices, i, 0)
		}
		eventually(t, func() string { return fmt.Sprintf("%d blocks are left", d.Stats().Blocks) }, "0 blocks are left")
		shm.SetDefault(before)
		check(t, d.Close())
		check(t, devices.Close())
	})
	return devices
}

// eventually waits until f says what is wanted, as it does when all who died have been reaped.
func eventually(t testing.TB, f func() string, want string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); f() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s; want %s", f(), want)
		}
	}
}

// comesTo waits until so many bytes of a device are in use.
func comesTo(t testing.TB, devices *sim.Devices, device int, want int64) {
	t.Helper()
	say := func(n int64, err error) string {
		return fmt.Sprintf("%d bytes of device %d are in use, %v", n, device, err)
	}
	eventually(t, func() string { return say(devices.Used(device)) }, say(want, nil))
}

// device returns one.
func device(t testing.TB, text string) tensor.Device {
	t.Helper()
	d, err := cuda.ParseDevice(text)
	check(t, err)
	return d
}

// onHost returns the elements of a tensor.
func onHost(t testing.TB, x *tensor.Tensor) []float32 {
	t.Helper()
	h, err := x.Cpu()
	check(t, err)
	dense := h.Contiguous()
	defer h.Close()
	defer dense.Close()
	return append([]float32{}, tensor.Data[float32](dense)...)
}
