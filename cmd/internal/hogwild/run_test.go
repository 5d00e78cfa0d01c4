package hogwild_test

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/cmd/internal/hogwild"
	"github.com/shoal-mp/shoal/encoding/safetensors"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/tensor"
)

func TestMain(m *testing.M) { shoaltest.TestMain(m) }

// The network fits, the images do not: nothing of either may stay.
func TestRunInADomainThatIsTooSmall(t *testing.T) {
	d, err := arena.New(arena.Options{Budget: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	usual, err := arena.Default()
	if err != nil {
		t.Fatal(err)
	}
	arena.SetDefault(d)
	defer func() {
		arena.SetDefault(usual)
		d.Close()
	}()
	o := original()
	o.Stdout, o.Stderr = io.Discard, io.Discard
	err = hogwild.Run(t.Context(), o)
	if space, ok := errors.AsType[*arena.SpaceError](err); !ok || space.Want < 28*28*12_000 {
		t.Errorf("%v: want the numbers of the space that is missing", err)
	}
	if s := d.Stats(); s.Blocks != 0 {
		t.Errorf("%+v: blocks were left behind", s)
	}
}

// Two processes, one batch each; the file has what PyTorch would call the parameters, and they are
// not those of the beginning.
func TestRunSavesTheNetwork(t *testing.T) {
	path := filepath.Join(t.TempDir(), "net.safetensors")
	saved := func(lr float64) map[string]*tensor.Tensor {
		o := original()
		o.Epochs, o.DryRun, o.Out, o.LR = 1, true, path, lr
		var out bytes.Buffer
		o.JSON, o.Stdout, o.Stderr = true, &out, io.Discard
		if err := hogwild.Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), `"leaked_blocks":0,"leaked_bytes":0,`) {
			t.Error(out.String())
		}
		return load(t, path)
	}
	still, moved := saved(1e-30), saved(0.1)
	want := []string{"conv1.bias", "conv1.weight", "conv2.bias", "conv2.weight", "fc1.bias", "fc1.weight",
		"fc2.bias", "fc2.weight"}
	if got := slices.Sorted(maps.Keys(moved)); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, name := range want {
		if tensor.Equal(still[name], moved[name]) {
			t.Errorf("%s has not learned", name)
		}
	}
}

func load(t *testing.T, path string) map[string]*tensor.Tensor {
	t.Helper()
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := f.Tensors()
	if err != nil {
		t.Fatal(err)
	}
	return all
}
