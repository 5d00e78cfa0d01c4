package torch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
)

// mnistNet is the network of PyTorch's example mnist_hogwild.
type mnistNet struct {
	Conv1, Conv2 *nn.Conv2d
	Conv2Drop    *nn.Dropout2d
	FC1, FC2     *nn.Linear
	Drop         *nn.Dropout
}

func newMNISTNet(seed uint64) *mnistNet {
	g := tensor.NewGenerator(seed)
	return &mnistNet{nn.NewConv2d(1, 10, 5, g), nn.NewConv2d(10, 20, 5, g), &nn.Dropout2d{P: 0.5},
		nn.NewLinear(320, 50, g), nn.NewLinear(50, 10, g), &nn.Dropout{P: 0.5}}
}

func (n *mnistNet) Forward(x *autograd.Var) *autograd.Var {
	two := autograd.Window{Size: [2]int{2, 2}}
	x = autograd.ReLU(autograd.MaxPool2d(n.Conv1.Forward(x), two))
	x = autograd.ReLU(autograd.MaxPool2d(n.Conv2Drop.Forward(n.Conv2.Forward(x)), two))
	x = autograd.ReLU(n.FC1.Forward(autograd.Flatten(x)))
	return autograd.LogSoftmax(n.FC2.Forward(n.Drop.Forward(x)), -1)
}

// trained is a network after an epoch over a few digits.
func trained(t *testing.T) *mnistNet {
	t.Helper()
	net := newMNISTNet(1)
	loader := data.NewLoader(datasets.Digits(640, 1), data.Options{BatchSize: 64, Transform: data.ToTensor})
	defer loader.Close()
	sgd := optim.NewSGD(nn.Params(net), optim.SGDOptions{LR: 0.05, Momentum: 0.5})
	for batch, err := range loader.Batches(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		sgd.ZeroGrad()
		nn.NLLLoss{}.Of(net.Forward(autograd.Const(batch[0])), batch[1]).Backward()
		sgd.Step()
	}
	nn.Eval(net)
	return net
}

// runFiles runs a function of files.py and returns what it prints.
func runFiles(t *testing.T, py peerPython, args ...string) string {
	t.Helper()
	c := exec.CommandContext(testContext(t), py.path, append([]string{"testdata/files.py"}, args...)...)
	c.Env = pythonEnv()
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", args[0], err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// What an error says to save in the place of a tensor is saved and read.
func TestLoad_ItsAdviceWorksAsItIsTyped(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		for _, kind := range []string{"quantized", "quantized by channel", "quantized to 32 bits", "sparse",
			"sparse rows",
			"nested", "jagged", "subclass"} {
			for _, format := range []string{"zip", "legacy"} {
				cell(t, kind+" "+format, func(t *testing.T) {
					path := filepath.Join(t.TempDir(), "odd.pt")
					if said := runFiles(t, py, "odd", path, kind, format, ""); said != "" {
						t.Log(said)
						return
					}
					v, err := pt.Load(path, pt.Options{})
					if !errors.Is(err, pt.ErrUnsupported) {
						t.Fatalf("%v, %v", v, err)
					}
					code := advice.FindString(err.Error())
					runFiles(t, py, "odd", path, kind, format, code)
					if v, err := pt.Load(path, pt.Options{}); err != nil || len(tensorsIn(v)) == 0 {
						t.Errorf("x%s is read as %v, %v", code, v, err)
					}
				})
			}
		}
	})
}

// farthest is the greatest difference between elements.
func farthest(a, b *tensor.Tensor) (d float64) {
	x, y := elements(a), elements(b)
	for i := range x {
		d = max(d, math.Abs(x[i]-y[i]))
	}
	return d
}

// TestSave_AnMNISTModelCrosses trains on one side and wants the same logits from the other side, by
// a file.
func TestSave_AnMNISTModelCrosses(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		dir := t.TempDir()
		file := func(name string) string { return filepath.Join(dir, name) }
		images := tensor.RandN(tensor.Float32, tensor.NewGenerator(3), 50, 1, 28, 28)
		if err := pt.Save(file("images.pt"), images); err != nil {
			t.Fatal(err)
		}
		forward := func(n *mnistNet) *tensor.Tensor { return n.Forward(autograd.Const(images)).T() }
		cell(t, "to PyTorch", func(t *testing.T) {
			net := trained(t)
			if err := pt.Save(file("go.pt"), nn.State(net)); err != nil {
				t.Fatal(err)
			}
			runFiles(t, py, "logits", file("go.pt"), file("images.pt"), file("logits.pt"))
			theirs, err := As[*tensor.Tensor](pt.Load(file("logits.pt"), pt.Options{}))
			if err != nil {
				t.Fatal(err)
			}
			if d := farthest(forward(net), theirs); d > 1e-6 {
				t.Errorf("logits differ by %v", d)
			}
		})
		runFiles(t, py, "train", file("images.pt"), file("torch.pt"), file("whole.pt"), file("theirs.pt"))
		theirs, err := As[*tensor.Tensor](pt.Load(file("theirs.pt"), pt.Options{}))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"torch.pt", "whole.pt"} {
			cell(t, "from PyTorch "+name, func(t *testing.T) {
				v, err := As[any](pt.Load(file(name), pt.Options{Mmap: true}))
				if err != nil {
					t.Fatal(err)
				}
				state, _, err := pt.StateDict(v)
				if err != nil {
					t.Fatal(err)
				}
				net := newMNISTNet(2)
				if err := nn.Load(net, state); err != nil {
					t.Fatal(err)
				}
				nn.Eval(net)
				if d := farthest(forward(net), theirs); d > 1e-6 {
					t.Errorf("logits differ by %v", d)
				}
			})
		}
		cell(t, "an optimizer there and back", func(t *testing.T) {
			runFiles(t, py, "resume", file("torch.pt"), "-", file("adam.pt"))
			v, err := As[any](pt.Load(file("adam.pt"), pt.Options{}))
			if err != nil {
				t.Fatal(err)
			}
			if err := pt.Save(file("adam-go.pt"), v); err != nil {
				t.Fatal(err)
			}
			runFiles(t, py, "resume", file("torch.pt"), file("adam-go.pt"), file("adam-again.pt"))
		})
	})
}

// TestSave_FilesCrossBothWays wants PyTorch to read the saved files, in all the ways that it has.
func TestSave_FilesCrossBothWays(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		path := filepath.Join(t.TempDir(), "saved.pt")
		base := tensor.Arange(tensor.Float32, 0, 6, 1).Reshape(2, 3)
		cases := []struct {
			v    any
			want string
		}{
			{map[string]any{"x": base, "y": base.T()},
				"dict{'x': float32[2, 3][3, 1]@0[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], 'y': float32[3, 2][1, " +
					"3]@0[[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]}"},
			{base.Select(0, 1), "float32[3][1]@0[3.0, 4.0, 5.0]"},
			{&autograd.Param{T: tensor.Ones(tensor.Float32, 1)}, "Parameter(True, float32[1][1]@0[1.0])"},
			{&autograd.Param{T: tensor.Ones(tensor.Int64, 1), Frozen: true}, "Parameter(False, int64[1][1]@0[1])"},
			{tensor.Scalar(tensor.BFloat16, 1.5), "bfloat16[][]@01.5"},
			{tensor.New(tensor.Float32, 0, 3), "float32[0, 3][3, 1]@0[]"},
			{python.Tuple{1, []any{"é", 2.5, nil, true}, python.Size{4}, tensor.Float16, []byte("\xff")},
				"tuple[1, list['é', 2.5, None, True], torch.Size([4]), torch.float16, b'\\xff']"},
			{orderedDict("b", int64(1)<<40, "a", -1), "OrderedDict{'b': 1099511627776, 'a': -1}"},
		}
		for dt := tensor.Bool; dt <= tensor.Complex128; dt++ {
			one := "1"
			switch {
			case dt == tensor.Bool:
				one = "True"
			case dt >= tensor.Complex64:
				one = "(1+0j)"
			case dt >= tensor.Float16:
				one = "1.0"
			}
			cases = append(cases, struct {
				v    any
				want string
			}{tensor.Ones(dt, 1), dt.String() + "[1][1]@0[" + one + "]"})
		}
		if runFiles(t, py, "young") == "True" {
			for dt := tensor.Uint16; dt <= tensor.Float8E5M2; dt++ {
				one := "1"
				if dt >= tensor.Float8E4M3FN {
					one = "1.0"
				}
				cases = append(cases, struct {
					v    any
					want string
				}{tensor.Ones(tensor.Float32, 1).To(dt), dt.String() + "[1][1]@0[" + one + "]"})
			}
		}
		call := []string{"reads"}
		for i, c := range cases {
			call = append(call, fmt.Sprint(path, i))
			if err := pt.Save(call[i+1], c.v); err != nil {
				t.Fatal(err)
			}
		}
		lines := strings.Split(runFiles(t, py, call...), "\n")
		if len(lines) != len(cases) {
			t.Fatalf("PyTorch reads %q", lines)
		}
		for i, c := range cases {
			cell(t, c.want, func(t *testing.T) {
				if lines[i] != c.want {
					t.Errorf("PyTorch reads %s", lines[i])
				}
			})
		}
		cell(t, "views share", func(t *testing.T) {
			if err := pt.Save(path, map[string]any{"base": base, "row": base.Select(0, 1)}); err != nil {
				t.Fatal(err)
			}
			if got := runFiles(t, py, "shares", path); got != "[[0.0, 1.0, 2.0], [7.0, 7.0, 7.0]]" {
				t.Errorf("PyTorch has %s", got)
			}
		})
		cell(t, "packed sequences", func(t *testing.T) {
			theirs := path + ".theirs"
			if err := pt.Save(path, &pt.PackedSequence{Data: tensor.Arange(tensor.Float32, 0, 5, 1),
				BatchSizes:      tensor.FromSlice([]int64{2, 2, 1}, 3),
				SortedIndices:   tensor.FromSlice([]int64{1, 0}, 2),
				UnsortedIndices: tensor.FromSlice([]int64{1, 0}, 2)}); err != nil {
				t.Fatal(err)
			}
			if got := runFiles(t, py, "packed", path, theirs); got != "[[1.0, 3.0], [0.0, 2.0, 4.0]]" {
				t.Errorf("PyTorch reads %s", got)
			}
			v, err := As[any](pt.Load(theirs, pt.Options{}))
			if p, ok := v.(*pt.PackedSequence); !ok ||
				fmt.Sprint(elements(p.Data), elements(p.BatchSizes),
					elements(p.SortedIndices)) != "[0 1 1 1 2] [2 2 1] [1 0]" {
				t.Errorf("of PyTorch: %T %v, %v", v, v, err)
			}
		})
	})
}

func orderedDict(pairs ...any) *python.Dict {
	d := python.NewDict(pairs...)
	d.Ordered = true
	return d
}
