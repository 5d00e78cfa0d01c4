package nn_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A half has layers that may not be there.
type half struct {
	First  *nn.Linear
	Second nn.Layer
}

func closedLinear(t *testing.T) *nn.Linear {
	l := nn.NewLinear(3, 2, nil)
	testutil.NoError(t, nn.Close(l))
	return l
}

func TestSaveFile_LeavesTheFileForAModuleThatIsNotWhole(t *testing.T) {
	without := nn.NewLinear(3, 2, nil)
	without.Weight.T = nil
	for name, c := range map[string]struct {
		m    nn.Module
		want error
		text string
	}{
		"closed":                  {closedLinear(t), tensor.ErrClosed, "weight: tensor: closed"},
		"a parameter of no value": {without, tensor.ErrClosed, "weight: nil tensor"},
		"nil layers":              {&half{}, nn.ErrEmpty, "*nn_test.half has no parameters: first is nil"},
		"no layers": {&nn.Sequential{}, nn.ErrEmpty,
			"*nn.Sequential has no parameters: layers is empty"},
		"a nil pointer": {(*nn.Linear)(nil), nn.ErrEmpty, "nil *nn.Linear"},
		"a nil layer": {nn.NewSequential(nn.NewLinear(3, 2, nil), nil), nn.ErrEmpty,
			"layer 1 of a Sequential is nil"},
		"a nil layer within": {&half{Second: nn.NewSequential((*nn.Linear)(nil))}, nn.ErrEmpty,
			"layer second.0 of"},
		"an interface's nil layer": {&struct{ Layer nn.Layer }{(*nn.Conv2d)(nil)}, nn.ErrEmpty,
			"no parameters: layer is nil"},
	} {
		for _, file := range []string{"net.pt", "net.safetensors"} {
			path := filepath.Join(t.TempDir(), file)
			testutil.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
			err := nn.SaveFile(c.m, path)
			if text := fmt.Sprint(err); !errors.Is(err, c.want) || !strings.Contains(text, c.text) ||
				!strings.Contains(text, path) {
				t.Errorf("%s: %v", name, err)
			}
			if b, _ := os.ReadFile(path); string(b) != "old" {
				t.Errorf("%s: the file has %q", name, b)
			}
			if all, _ := os.ReadDir(filepath.Dir(path)); len(all) != 1 {
				t.Errorf("%s: %v", name, all)
			}
		}
	}
	for _, whole := range []nn.Module{
		&half{First: nn.NewLinear(3, 2, nil)}, // the other layer is optional
		nn.NewSequential(nn.ReLU),
		nn.ReLU,
	} {
		testutil.NoError(t, nn.SaveFile(whole, filepath.Join(t.TempDir(), "net.pt")))
	}
}

func TestModule_ThatIsClosedIsAnError(t *testing.T) {
	net, dir := closedLinear(t), t.TempDir()
	whole := nn.NewLinear(3, 2, nil)
	file := filepath.Join(dir, "net.pt")
	testutil.NoError(t, nn.SaveFile(whole, file))
	part := func(m nn.Module, state map[string]*tensor.Tensor) error {
		_, _, err := nn.LoadPart(m, state)
		return err
	}
	for name, err := range map[string]error{
		"LoadFile":      nn.LoadFile(net, file, nil),
		"Load":          nn.Load(net, nn.State(whole)),
		"Load of it":    nn.Load(whole, nn.State(net)),
		"LoadPart":      part(net, nn.State(whole)),
		"LoadPart of":   part(whole, nn.State(net)),
		"To":            nn.To(net, nil),
		"Share":         nn.Share(net),
		"Share of none": autograd.NewParam("w", nil).Share(),
	} {
		if !errors.Is(err, tensor.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	testutil.NoError(t, nn.Close(net))
	testutil.NoError(t, autograd.NewParam("w", nil).Close())
}
