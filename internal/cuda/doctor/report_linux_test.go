package doctor

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/cuda/sim"
	"github.com/shoal-mp/shoal/internal/dl"
	"github.com/shoal-mp/shoal/test/testutil"
)

const mib = 1 << 20

// simulate returns a driver over n simulated devices.
func simulate(t *testing.T, n int) *sim.Driver {
	t.Helper()
	devices, err := sim.Create(n, 64*mib)
	testutil.NoError(t, err)
	t.Cleanup(func() {
		for i := range n {
			if used, err := devices.Used(i); used != 0 || err != nil {
				t.Errorf("%d bytes of device %d are left, %v", used, i, err)
			}
		}
		testutil.NoError(t, devices.Close())
	})
	t.Setenv(cudriver.SimulateKey, strings.Join(devices.Paths(), ","))
	driver, err := cudriver.Open()
	testutil.NoError(t, err)
	return driver.(*sim.Driver)
}

func TestExamine_TriesEveryWay(t *testing.T) {
	driver := simulate(t, 2)
	t.Setenv("CUDA_VISIBLE_DEVICES", "MIG-1,MIG-2")
	driver.Fail("cuIpcGetMemHandle", 2, cudriver.ErrorNotPermitted)
	r := examineDriver(driver)
	if !r.Simulated || len(r.Devices) != 2 || r.Devices[0].Total != 64*mib || len(r.Devices[1].Peers) != 1 {
		t.Errorf("%+v", r)
	}
	refused := 0
	for _, d := range r.Devices {
		for _, w := range d.Ways {
			if w.Err != "" {
				refused++
			}
		}
	}
	if w := r.Devices[1].Ways[2]; refused != 1 || !strings.Contains(w.Err, "CUDA_ERROR_NOT_PERMITTED") {
		t.Errorf("%d are refused: %+v", refused, r.Devices)
	}
	var text strings.Builder
	testutil.NoError(t, r.Print(&text))
	if got := strings.Count(text.String(), ": permitted\n"); got != 9 ||
		!strings.Contains(text.String(),
			"(PyTorch, CuPy): NOT permitted: cuIpcGetMemHandle: CUDA_ERROR_NOT_PERMITTED (800); tensors cannot be "+
				"shared with PyTorch") {
		t.Errorf("%s", &text)
	}
	if !regexp.MustCompile(
		`(?s)cuda:0 .* UUID [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\n +reaches the memory of cuda:1\n`).
		MatchString(text.String()) {
		t.Errorf("%s", &text)
	}
	if !strings.Contains(text.String(), "CUDA_VISIBLE_DEVICES is \"MIG-1,MIG-2\"") {
		t.Errorf("%s", &text)
	}
	b, err := json.Marshal(r)
	testutil.NoError(t, err)
	if !strings.Contains(string(b), `"driver":"12.8","visible":"MIG-1,MIG-2"`) {
		t.Errorf("%s", b)
	}
}

// The numbers are tried where the clock of package cuda has them: in shared memory of the host.
func TestExamine_TriesNumbersInMemoryOfTheHost(t *testing.T) {
	for _, call := range []string{"cuMemHostRegister", "cuMemHostGetDevicePointer", "cuStreamWriteValue32",
		"cuStreamWaitValue32"} {
		driver := simulate(t, 1)
		driver.Fail(call, 1, cudriver.ErrorNotSupported)
		w := examineDriver(driver).Devices[0].Ways[1]
		if !strings.Contains(w.Err, call) || w.Lost != "Put waits for the device" {
			t.Errorf("%s is refused: %+v", call, w)
		}
		if n := driver.Open().Mappings; n != 0 {
			t.Errorf("%s is refused: %d pages are left registered", call, n)
		}
	}
}

// What hinders a driver mostly has one cause, and the report names it.
func TestAdvise_NamesTheCause(t *testing.T) {
	for err, want := range map[error]string{
		fmt.Errorf("open: %w", dl.ErrNotLoaded):                                     "--gpus all",
		cudriver.Check("cuInit", 34):                                                "stubs",
		cudriver.Check("cuInit", 100):                                               "nvidia-smi -L",
		cudriver.Check("cuInit", 304):                                               "/dev/nvidia*",
		cudriver.Check("cuInit", 802):                                               "nvidia-fabricmanager",
		cudriver.Check("cuInit", 803):                                               "reboot",
		cudriver.Check("cuInit", 804):                                               "cuda-compat",
		cudriver.Check("cuInit", 805):                                               "nvidia-cuda-mps-control",
		cudriver.Check("cuInit", 999):                                               "nvidia_uvm",
		cudriver.Check("cuDevicePrimaryCtxRetain", cudriver.ErrorOutOfMemory):       "memory is full",
		cudriver.Check("cuDevicePrimaryCtxRetain", cudriver.ErrorDeviceUnavailable): "nvidia-smi -c DEFAULT",
	} {
		if got := advise(err); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%v: %q, want %q in one", err, got, want)
		}
	}
	if got := advise(cudriver.Check("cuInit", 1)); len(got) != 0 {
		t.Errorf("of what is not known: %q", got)
	}
}

func TestExamine_SaysWhyThereIsNoDevice(t *testing.T) {
	t.Setenv(cudriver.SimulateKey, "/dev/null")
	for _, visible := range []string{"", "nonsense"} {
		t.Setenv("CUDA_VISIBLE_DEVICES", visible)
		var text strings.Builder
		testutil.NoError(t, Examine().Print(&text))
		if want := fmt.Sprintf("recommended changes:\n  - CUDA_VISIBLE_DEVICES is %q: unset it",
			visible); !strings.Contains(text.String(), want) {
			t.Errorf("%s\nwant %s", &text, want)
		}
	}
}

// One process has the device, and the report says what to do about it.
func TestExamine_SaysThatAnotherProcessHasTheDeviceForItself(t *testing.T) {
	driver := simulate(t, 1)
	driver.Take(true)
	var text strings.Builder
	r := examineDriver(driver)
	testutil.NoError(t, r.Print(&text))
	if d := r.Devices[0]; !d.Alone || len(d.Ways) != 0 ||
		!strings.Contains(d.Unusable, "CUDA_ERROR_DEVICE_UNAVAILABLE") ||
		!strings.Contains(text.String(), "nvidia-smi -c DEFAULT") {
		t.Errorf("%+v\n%s", d, &text)
	}
	driver.Take(false)
	if r := examineDriver(driver); r.Devices[0].Alone || r.Devices[0].Unusable != "" {
		t.Errorf("%+v", r)
	}
}
