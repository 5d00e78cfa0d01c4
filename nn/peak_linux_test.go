//go:build !race

package nn_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// The environment of a process that loads a network: the file, and what it does.
const loaded, loading = "SHOAL_TEST_LOADED", "SHOAL_TEST_LOADING"

// wideNet has 64 MiB in four layers.
func wideNet() *nn.Sequential {
	g := tensor.NewGenerator(1)
	layers := make([]nn.Layer, 4)
	for i := range layers {
		layers[i] = nn.NewLinear(2048, 2048, g)
	}
	return nn.NewSequential(layers...)
}

// A network that is made, loaded and served is in memory once: neither the file nor what the
// parameters leave on the heap comes on top of it.
func TestLoadFile_ANetworkThatIsServedIsInMemoryOnce(t *testing.T) {
	const size = 64 << 20
	net, dir := wideNet(), t.TempDir()
	for _, file := range []string{"net.pt", "net.safetensors"} {
		path := filepath.Join(dir, file)
		testutil.NoError(t, nn.SaveFile(net, path))
		for _, do := range []string{"load, bind", "load, share", "share, load"} {
			c := exec.Command(os.Args[0], "-test.run=^TestServedNetwork$", "-test.v")
			c.Env = append(os.Environ(), loaded+"="+path, loading+"="+do)
			out, err := c.CombinedOutput()
			_, line, found := strings.Cut(string(out), "peak: ")
			var peak int
			if _, scanErr := fmt.Sscan(line, &peak); err != nil || !found || scanErr != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if peak > size*3/2 {
				t.Errorf("%s of %s: %d MiB for a network of %d MiB", do, file, peak>>20, size>>20)
			}
		}
	}
	testutil.NoError(t, nn.Close(net))
}

// TestServedNetwork is what the processes of the test above do.
func TestServedNetwork(t *testing.T) {
	path := os.Getenv(loaded)
	if path == "" {
		t.Skip("only in processes of another test")
	}
	before := statusOf(t, "VmRSS")
	net := wideNet()
	for do := range strings.SplitSeq(os.Getenv(loading), ", ") {
		switch do {
		case "load":
			testutil.NoError(t, nn.LoadFile(net, path, nil))
		case "share":
			testutil.NoError(t, nn.Share(net))
		case "bind":
			testutil.NoError(t, ipc.Bind(t.Context(), "net", net))
			defer ipc.Unlink("net")
		}
	}
	fmt.Printf("peak: %d\n", statusOf(t, "VmHWM")-before)
	state, err := nn.ReadState(path)
	testutil.NoError(t, err)
	for name, x := range nn.State(net) {
		if !tensor.Equal(x, state[name]) {
			t.Errorf("%s is not what the file has", name)
		}
		testutil.NoError(t, state[name].Close())
	}
	testutil.NoError(t, nn.Close(net))
}

// statusOf returns a figure of this process, in bytes.
func statusOf(t *testing.T, name string) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	testutil.NoError(t, err)
	_, line, found := strings.Cut(string(b), name+":")
	var kib int
	if _, err := fmt.Sscan(line, &kib); !found || err != nil {
		t.Fatalf("no %s in %s", name, b)
	}
	return kib << 10
}
