package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/cuda/sim"
	"github.com/shoal-mp/shoal/shoaltest"
)

func TestMain(m *testing.M) { shoaltest.TestMain(m) }

func TestDoctorHasAnotherProcessWriteATensor(t *testing.T) {
	devices, err := sim.Create(2, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer devices.Close()
	d, err := arena.New(arena.Options{Budget: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	before := arena.Current()
	arena.SetDefault(d)
	defer func() {
		arena.SetDefault(before)
		if err := errors.Join(cuda.Close(), d.Close()); err != nil {
			t.Error(err)
		}
	}()
	t.Setenv(cuda.SimulateKey, strings.Join(devices.Paths(), ","))
	r := examineDevices(t.Context())
	if len(r.Devices) != 2 {
		t.Fatalf("%+v", r)
	}
	for _, d := range r.Devices {
		if w := d.Ways[len(d.Ways)-1]; w.Name != "write to a tensor from another process" || w.Err != "" {
			t.Errorf("%s: %+v", d.Name, w)
		}
	}
	t.Setenv(cuda.SimulateKey, "/dev/null") // what the other process finds
	if err := tryProcess(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "CUDA_ERROR_NO_DEVICE") {
		t.Errorf("another process without a device: %v", err)
	}
}
