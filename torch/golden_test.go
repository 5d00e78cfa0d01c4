package torch

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
)

var writeGolden = flag.Bool("golden.write", false, "write the checkpoint of this version")

// A goldenCheckpoint has what programs save: a whole module, its state, and an optimizer's.
type goldenCheckpoint struct {
	Module    *savedNet                 `torch:"module"`
	Model     map[string]*tensor.Tensor `torch:"model"`
	Optimizer optim.StateDict           `torch:"optimizer"`
	Epoch     int                       `torch:"epoch"`
}

// goldenNet has parameters that everybody knows.
func goldenNet() *savedNet {
	n := newSavedNet()
	nn.Eval(n)
	state := nn.State(n)
	for i, name := range slices.Sorted(maps.Keys(state)) {
		state[name].Fill(float64(i) / 64)
	}
	return n
}

// goldenOptimizer has taken two steps by gradients of 1.
func goldenOptimizer() (*optim.SGD, *autograd.Param) {
	p := autograd.NewParam("p", tensor.Ones(tensor.Float32, 3))
	o := optim.NewSGD(slices.Values([]*autograd.Param{p}), optim.SGDOptions{LR: 0.25, Momentum: 0.5})
	for range 2 {
		p.Grad = tensor.Ones(tensor.Float32, 3)
		o.Step()
	}
	return o, p
}

// testdata/golden has a checkpoint of each version. Later versions load all of them.
func TestGolden_CheckpointsOfEveryVersionAreLoaded(t *testing.T) {
	if *writeGolden {
		o, _ := goldenOptimizer()
		n := goldenNet()
		err := os.MkdirAll("testdata/golden", 0o777)
		if err == nil {
			err = pt.Save("testdata/golden/1.pt", map[string]any{"module": n, "model": nn.State(n),
				"optimizer": optim.State(o), "epoch": 7})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	all, err := filepath.Glob("testdata/golden/*.pt")
	if err != nil || len(all) == 0 {
		t.Fatalf("no checkpoints: %v", err)
	}
	for _, file := range all {
		c, err := As[goldenCheckpoint](pt.Load(file, pt.Options{}))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		want := nn.State(goldenNet())
		for _, state := range []map[string]*tensor.Tensor{nn.State(c.Module), c.Model} {
			if len(state) != len(want) {
				t.Errorf("%s has %v", file, state)
			}
			for name, x := range state {
				if want[name] == nil || !tensor.Equal(x, want[name]) {
					t.Errorf("%s: %s is %v, not %v", file, name, x, want[name])
				}
			}
		}
		o, p := goldenOptimizer()
		p2 := autograd.NewParam("p", p.T.Clone())
		again := optim.NewSGD(slices.Values([]*autograd.Param{p2}), optim.SGDOptions{})
		if err := optim.Load(again, c.Optimizer); err != nil || c.Epoch != 7 {
			t.Errorf("%s: epoch %d, %v", file, c.Epoch, err)
			continue
		}
		p.Grad, p2.Grad = tensor.Ones(tensor.Float32, 3), tensor.Ones(tensor.Float32, 3)
		o.Step()
		again.Step()
		if !tensor.Equal(p.T, p2.T) {
			t.Errorf("%s: the next step goes to %v, not %v", file, p2.T, p.T)
		}
	}
}
