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
	34:                                 "the loader finds the stub of CUDA's toolkit and not the driver's library: take folders named stubs out of LD_LIBRARY_PATH",
	cudriver.ErrorOutOfMemory:          "the device's memory is full, and a context takes some hundreds of MiB: nvidia-smi shows who has it",
	cudriver.ErrorDeviceUnavailable:    "another process has the device for itself, or nobody may: nvidia-smi -c DEFAULT lets all processes use it",
	cudriver.ErrorNoDevice:             "the driver sees no GPU: nvidia-smi -L lists those of the machine; a container gets them by --gpus all, and their /dev/nvidia* with them",
	cudriver.ErrorOperatingSystem:      "a system call failed: look whether /dev/nvidia*, nvidia-uvm among them, are there and may be opened, and at the seccomp profile of the container",
	802:                                "the machine is not ready: with NVSwitch, nvidia-fabricmanager has to run, of the driver's own version; dmesg says more",
	cudriver.ErrorSystemDriverMismatch: "the library and the kernel's module are of different drivers, as after an upgrade: restart, or load the module again; a container needs the library of its host",
	804:                                "a library for forward compatibility is loaded, which this device cannot have: take the folder of cuda-compat out of LD_LIBRARY_PATH",
	805:                                "the control daemon of MPS does not answer: start nvidia-cuda-mps-control -d, or unset CUDA_MPS_PIPE_DIRECTORY",
	cudriver.ErrorUnknown:              "mostly the module nvidia_uvm: modprobe nvidia_uvm, or nvidia-modprobe -u, and again after the machine has slept; dmesg says more",
}

// advise returns the known remedies for an error.
func advise(err error) (advice []string) {
	if errors.Is(err, dl.ErrNotLoaded) {
		advice = append(advice,
			"install NVIDIA's driver, or start the container with --gpus all, which brings libcuda.so.1; LD_LIBRARY_PATH names its folder where the loader does not know it")
	}
	if visible, ok := os.LookupEnv("CUDA_VISIBLE_DEVICES"); ok && errors.Is(err, cudriver.ErrorNoDevice) {
		return []string{fmt.Sprintf(
			"CUDA_VISIBLE_DEVICES is %q: unset it, or name numbers or UUIDs that nvidia-smi -L lists", visible)}
	}
	if r, ok := errors.AsType[cudriver.Result](err); ok && remedies[r] != "" {
		advice = append(advice, remedies[r])
	}
	return advice
}

// advise returns advice about a device. unusable is the error of using it, or nil.
func (d DeviceReport) advise(unusable error) (advice []string) {
	advice = advise(unusable)
	if d.Alone && !errors.Is(unusable, cudriver.ErrorDeviceUnavailable) {
		advice = append(advice, fmt.Sprintf(
			"%s: its compute mode lets no second process use it: nvidia-smi -c DEFAULT does", d.Name))
	}
	if strings.Contains(d.Model, " MIG ") {
		advice = append(advice, fmt.Sprintf(
			"%s is a part of a GPU: processes share its memory where CUDA_VISIBLE_DEVICES names the same part for all", d.Name))
	}
	return advice
}
