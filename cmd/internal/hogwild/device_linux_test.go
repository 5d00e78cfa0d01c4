package hogwild_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/cmd/internal/hogwild"
	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/internal/cudriver/sim"
	"github.com/shoal-mp/shoal/tensor"
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

// Two processes train one network in the memory of a device.
func TestANetworkOnADevice(t *testing.T) {
	devices, err := sim.Create(1, 256<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer devices.Close()
	t.Setenv(cuda.SimulateKey, strings.Join(devices.Paths(), ","))
	path := filepath.Join(t.TempDir(), "net.safetensors")
	saved := func(device string, lr float64) map[string]*tensor.Tensor {
		var out, log bytes.Buffer
		o := original()
		o.Data, o.Device, o.Out, o.LR = fewDigits(t, 8, 4), device, path, lr
		o.Epochs, o.BatchSize, o.TestBatchSize, o.LogInterval = 1, 4, 4, 1
		o.JSON, o.Stdout, o.Stderr = true, &out, &log
		if err := hogwild.Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		var r hogwild.Result
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if r.LeakedBlocks != 0 || r.Samples != 16 || !r.Tested {
			t.Errorf("%s", out.String())
		}
		if device == "auto" && !strings.Contains(log.String(), "device auto: cuda:0") {
			t.Errorf("what auto is: %q", log.String())
		}
		return load(t, path)
	}
	still, moved := saved("cuda", 1e-30), saved("auto", 0.1)
	for name, before := range still {
		if tensor.Equal(before, moved[name]) {
			t.Errorf("%s has not learned", name)
		}
	}
	if n, err := devices.Used(0); n != 0 || err != nil {
		t.Errorf("%d bytes are left on the device, %v", n, err)
	}
}
