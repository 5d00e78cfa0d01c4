package cuda_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/encoding/safetensors"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/devicetest"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A file of PyTorch's form says where its tensors were, and they come back there, or where they are
// wanted.
func TestDevice_FilesBringTensorsThere(t *testing.T) {
	onDevices(t, 2, 64*mib)
	net := nn.NewLinear(3, 2, tensor.NewGenerator(1))
	want := nn.State(nn.Clone(net))
	testutil.NoError(t, nn.To(net, device(t, "cuda:1")))
	path := filepath.Join(t.TempDir(), "net.pt")
	testutil.NoError(t, pt.Save(path, nn.State(net)))
	for location, o := range map[string]pt.Options{
		"cuda:1": {}, "cuda:0": {MapLocation: pt.To("cuda:0")},
		"cpu": {MapLocation: func(l string) string { return map[string]string{"cuda:1": "cpu"}[l] }},
	} {
		v, err := pt.Load(path, o)
		testutil.NoError(t, err)
		state, _, err := pt.StateDict(v)
		testutil.NoError(t, err)
		for name, x := range state {
			if x.Device() != device(t, location) {
				t.Errorf("%s is on %v, not on %s", name, x.Device(), location)
			}
			devicetest.Same(t, x, want[name], 0)
		}
		for _, x := range state {
			testutil.NoError(t, x.Close())
		}
	}

	plain := filepath.Join(t.TempDir(), "net.safetensors") // which says nothing of places
	testutil.NoError(t, safetensors.Save(plain, nn.State(net)))
	f, err := safetensors.Open(plain)
	testutil.NoError(t, err)
	for name, w := range want {
		near, err := f.Tensor(name)
		testutil.NoError(t, err)
		x, err := near.ToDevice(device(t, "cuda:0"))
		testutil.NoError(t, err)
		if x.Device() != device(t, "cuda:0") {
			t.Errorf("%s is on %v", name, x.Device())
		}
		devicetest.Same(t, x, w, 0)
		testutil.NoError(t, x.Close())
	}
	testutil.NoError(t, errors.Join(f.Close(), nn.Close(net)))
}
