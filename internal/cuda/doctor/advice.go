package doctor

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/dl"
)

// remedies maps the results of a failed driver initialization, or of a failed context creation, to
// advice for the user.
var remedies = map[cudriver.Result]string{
	34: "the loader found the stub library of the CUDA toolkit instead of the " +
		"driver's: remove directories named stubs from LD_LIBRARY_PATH",
	cudriver.ErrorOutOfMemory: "the device's memory is full, and a context needs some hundreds of MiB: " +
		"nvidia-smi lists the processes that use it",
	cudriver.ErrorDeviceUnavailable: "the device is used exclusively by another process, or its compute mode " +
		"is Prohibited: run nvidia-smi -c DEFAULT to share it",
	cudriver.ErrorNoDevice: "the driver finds no GPU: nvidia-smi -L lists those of the machine; start " +
		"a container with --gpus all, which also adds /dev/nvidia*",
	cudriver.ErrorOperatingSystem: "a system call failed: check that /dev/nvidia*, including nvidia-uvm, " +
		"exist and can be opened, and check the container's seccomp profile",
	802: "the machine is not ready: NVSwitch needs nvidia-fabricmanager of the " +
		"driver's version; see dmesg",
	cudriver.ErrorSystemDriverMismatch: "the library and the kernel module belong to different driver versions, " +
		"as after an upgrade: reboot or reload the module; a container needs the library of its host",
	804: "a forward compatibility library is loaded, which this device does not " +
		"support: remove the cuda-compat directory from LD_LIBRARY_PATH",
	805: "the MPS control daemon does not respond: start nvidia-cuda-mps-control " +
		"-d, or unset CUDA_MPS_PIPE_DIRECTORY",
	cudriver.ErrorUnknown: "often the nvidia_uvm module is not loaded: run modprobe nvidia_uvm or " +
		"nvidia-modprobe -u, also after a suspend; see dmesg",
}

// advise returns the known remedies for an error, or nothing if there is none or err is nil.
func advise(err error) (advice []string) {
	if errors.Is(err, dl.ErrNotLoaded) {
		advice = append(advice,
			"install NVIDIA's driver, or start the container with --gpus all, which adds libcuda.so.1; add its "+
				"directory to LD_LIBRARY_PATH if the loader does not find it")
	}
	if visible, ok := os.LookupEnv("CUDA_VISIBLE_DEVICES"); ok && errors.Is(err, cudriver.ErrorNoDevice) {
		return []string{fmt.Sprintf(
			"CUDA_VISIBLE_DEVICES is %q: unset it, or use numbers or UUIDs listed by nvidia-smi -L", visible)}
	}
	if r, ok := errors.AsType[cudriver.Result](err); ok && remedies[r] != "" {
		advice = append(advice, remedies[r])
	}
	return advice
}

// advise returns advice about a device, or nothing if there is none. unusable is the error of
// using it, or nil.
func (d DeviceReport) advise(unusable error) (advice []string) {
	advice = advise(unusable)
	if d.Alone && !errors.Is(unusable, cudriver.ErrorDeviceUnavailable) {
		advice = append(advice, fmt.Sprintf(
			"%s: the compute mode prevents a second process from using it: run nvidia-smi -c DEFAULT", d.Name))
	}
	if strings.Contains(d.Model, " MIG ") {
		advice = append(advice, fmt.Sprintf(
			"%s is a MIG instance: processes can share its memory only if CUDA_VISIBLE_DEVICES selects the same "+
				"instance in all of them", d.Name))
	}
	return advice
}
