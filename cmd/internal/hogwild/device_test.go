package hogwild_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/cmd/internal/hogwild"
	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/cuda/sim"
	"github.com/shoal-mp/shoal/tensor"
	_ "github.com/shoal-mp/shoal/test/devicetest" // test:0
)

// fewDigits writes the four files of MNIST with so many images, which are no digits.
func fewDigits(t *testing.T, train, test int) (folder string) {
	t.Helper()
	folder = t.TempDir()
	write := func(name string, head []uint32, body []byte) {
		var b bytes.Buffer
		if err := binary.Write(&b, binary.BigEndian, head); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), append(b.Bytes(), body...), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	g := tensor.NewGenerator(1)
	for prefix, n := range map[string]int{"train": train, "t10k": test} {
		images := tensor.RandInt(g, 0, 256, n*28*28).To(tensor.Uint8)
		labels := tensor.RandInt(g, 0, 10, n).To(tensor.Uint8)
		write(prefix+"-images-idx3-ubyte", []uint32{0x803, uint32(n), 28, 28}, tensor.Data[uint8](images))
		write(prefix+"-labels-idx1-ubyte", []uint32{0x801, uint32(n)}, tensor.Data[uint8](labels))
	}
	return folder
}

// learns has two processes train one network in the memory of a device, from where nothing but
// their steps changes it.
func learns(t *testing.T, device string, train int) hogwild.Result {
	t.Helper()
	path := filepath.Join(t.TempDir(), "net.safetensors")
	data := fewDigits(t, train, 2)
	saved := func(device string, lr float64) (r hogwild.Result, net map[string]*tensor.Tensor) {
		var out bytes.Buffer
		o := original()
		o.Data, o.Device, o.Out, o.LR = data, device, path, lr
		o.Epochs, o.BatchSize, o.TestBatchSize, o.LogInterval = 1, 2, 2, 1
		o.JSON, o.Stdout, o.Stderr = true, &out, io.Discard
		if err := hogwild.Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if r.LeakedBlocks != 0 || r.Samples != 2*train || !r.Tested {
			t.Errorf("%s", out.String())
		}
		return r, load(t, path)
	}
	_, still := saved("cpu", 1e-30)
	r, moved := saved(device, 0.1)
	for name, before := range still {
		if sum := tensor.Abs(moved[name]).Sum(); tensor.Equal(before, moved[name]) || sum != sum {
			t.Errorf("%s has not learned: %v", name, moved[name])
		}
	}
	return r
}

func TestANetworkOnADevice(t *testing.T) { learns(t, "test:0", 8) }

// The kernels are interpreted, so there is little to learn: a batch for each process.
func TestANetworkOnASimulatedGPU(t *testing.T) {
	simulated(t)
	r := learns(t, "cuda", 2)
	if there := int64(2*28*28 + 4*21_840); r.Device != "cuda:0" || r.BytesShared < there || r.BytesMovedIn < there {
		t.Errorf("%+v", r)
	}
}

// simulated gives this process and its children two GPUs, on which nothing may be left.
func simulated(t *testing.T) {
	t.Helper()
	if raceEnabled {
		t.Skip("half a minute under the race detector")
	}
	devices, err := sim.Create(2, 256<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(cuda.SimulateKey, strings.Join(devices.Paths(), ","))
	if err := cuda.Close(); err != nil { // others may have asked, and there were none
		t.Fatal(err)
	}
	domain, err := arena.New(arena.Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := arena.Current()
	arena.SetDefault(domain)
	t.Cleanup(func() {
		for n := range 2 {
			for end := time.Now().Add(time.Minute); ; {
				used, err := devices.Used(n)
				if err = errors.Join(err, tensor.EmptyCache()); err != nil {
					t.Error(err)
				}
				if used == 0 {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("%d bytes are left on device %d", used, n)
				}
			}
		}
		arena.SetDefault(before)
		if err := errors.Join(cuda.Close(), domain.Close(), devices.Close()); err != nil {
			t.Error(err)
		}
	})
}

// A killer kills the first worker that it reads of.
type killer struct {
	log  bytes.Buffer
	done bool
}

func (k *killer) Write(b []byte) (int, error) {
	if worker, _, ok := strings.Cut(string(b), "\trank "); ok && !k.done {
		pid, err := strconv.Atoi(worker)
		if err != nil {
			return 0, err
		}
		p, err := os.FindProcess(pid)
		if err == nil {
			err = p.Kill()
		}
		if k.done = true; err != nil {
			return 0, err
		}
	}
	return k.log.Write(b)
}

// killed trains for ever, until a worker is killed. What the others have learned until then is on
// the device, and nothing else.
func killed(t *testing.T, o hogwild.Options) {
	path := filepath.Join(t.TempDir(), "net.safetensors")
	var out bytes.Buffer
	var k killer
	o.Out, o.LR, o.Epochs, o.LogInterval = path, 0.01, 1_000_000, 1
	o.JSON, o.Stdout, o.Stderr = true, &out, &k
	err := hogwild.Run(t.Context(), o)
	if died, ok := errors.AsType[*shoal.ProcessError](err); !ok || died.Signal != syscall.SIGKILL {
		t.Fatalf("%v\n%s", err, &k.log)
	}
	var r hogwild.Result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if r.LeakedBlocks != 0 || r.Reaped == 0 || !r.Tested || r.Device != o.Device {
		t.Errorf("%s", out.String())
	}
	for name, x := range load(t, path) {
		if sum := tensor.Abs(x).Sum(); sum == 0 || sum != sum || sum > 1e6 {
			t.Errorf("%s: %v", name, x)
		}
	}
}

func TestAWorkerOnADeviceIsKilled(t *testing.T) {
	o := original()
	o.Data, o.Device, o.BatchSize, o.TestBatchSize = fewDigits(t, 8, 4), "test:0", 2, 2
	killed(t, o)
}

func TestAWorkerOnASimulatedGPUIsKilled(t *testing.T) {
	simulated(t)
	o := original()
	o.Data, o.Device, o.BatchSize, o.TestBatchSize = fewDigits(t, 2, 1), "cuda:1", 1, 1
	killed(t, o)
}

// withoutAGPU runs the test as on a machine that has none.
func withoutAGPU(t *testing.T) {
	t.Setenv(cuda.SimulateKey, "/dev/null")
	forget := func() {
		if err := cuda.Close(); err != nil {
			t.Error(err)
		}
	}
	forget() // others may have asked
	t.Cleanup(forget)
}

func TestWithoutAGPUCUDAIsAnErrorThatSaysWhatElse(t *testing.T) {
	withoutAGPU(t)
	o := original()
	o.Device = "cuda"
	err := hogwild.Run(t.Context(), o)
	if !errors.Is(err, hogwild.ErrOption) || !errors.Is(err, cuda.ErrUnavailable) ||
		!strings.Contains(err.Error(), "--device cuda: ") ||
		!strings.Contains(err.Error(), "auto for a GPU if one can be used") {
		t.Errorf("%v", err)
	}
}

func TestAutoWithoutAGPUIsTheCPUAndSaysSo(t *testing.T) {
	withoutAGPU(t)
	var log bytes.Buffer
	o := original()
	o.Data, o.Device, o.Epochs, o.BatchSize, o.DryRun = fewDigits(t, 2, 2), "auto", 1, 2, true
	o.JSON, o.Stdout, o.Stderr = true, io.Discard, &log
	if err := hogwild.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "device auto: the CPU, since no GPU can be used: ") {
		t.Errorf("%q", log.String())
	}
}
