package ptx_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/shoal-mp/shoal/cuda/internal/ptx"
	"github.com/shoal-mp/shoal/internal/cuda/sim/vm"
	"github.com/shoal-mp/shoal/internal/device"
	_ "github.com/shoal-mp/shoal/tensor" // has the table of operations
)

var (
	elements = []ptx.Type{ptx.Bool, ptx.Uint8, ptx.Int8, ptx.Int16, ptx.Int32, ptx.Int64, ptx.Float16,
		ptx.BFloat16, ptx.Float32, ptx.Float64}
)

// kernels returns all that there are, but that of conversions there is only one for each type.
func kernels() (all []ptx.Kernel) {
	add := func(k ptx.Kernel, ok bool) {
		if ok {
			all = append(all, k)
		}
	}
	for _, t := range elements {
		for _, o := range device.Ops() {
			add(mapped(o, t))
		}
		add(ptx.Map("AddAtomic", t, ptx.Operand{Type: t}))
		if t != ptx.Bool {
			add(ptx.Map("Copy", t, ptx.Operand{Type: ptx.Float64}))
		}
		add(ptx.Map("Copy", ptx.Float32, ptx.Operand{Type: t, Number: true}))
		add(ptx.Map("Copy", ptx.Bool, ptx.Operand{Type: t}))
		for _, kind := range []string{"Arithmetic", "RandomUniform", "RandomNormal", "RandomBernoulli",
			"RandomInteger"} {
			add(ptx.Sequence(kind, t), true)
		}
	}
	for _, t := range elements {
		for _, name := range []string{"Sum", "Prod", "Amax", "Amin", "Argmax", "Argmin", "Var"} {
			out := t
			switch name {
			case "Sum", "Prod", "Var":
				if out = ptx.Int64; t == ptx.Float32 || t == ptx.Float64 || t == ptx.Float16 || t == ptx.BFloat16 {
					out = ptx.Float64
				}
			case "Argmax", "Argmin":
				out = ptx.Int64
			}
			add(ptx.Reduce(name, out, t))
		}
		add(ptx.MatMul(t))
		add(ptx.Fold(t))
		add(ptx.MaxPool(t), true)
		add(ptx.Scatter(t, true), true)
	}
	for _, t := range []ptx.Type{ptx.Float16, ptx.BFloat16, ptx.Float32, ptx.Float64} {
		for kind, operands := range map[string][]int{"Softmax": {1}, "SoftmaxGradient": {2}, "LogSoftmax": {1},
			"LogSoftmaxGradient": {2}, "NLL": {2}, "Norm": {1, 3}, "NormGradient": {2, 3}} {
			for _, n := range operands {
				add(ptx.Rows(kind, t, n))
			}
		}
		for name, operands := range map[string]int{"GELU": 1, "GELUGradient": 2, "Gated": 3, "GatedGradient": 4,
			"ReLUGradient": 2} {
			in := slices.Repeat([]ptx.Operand{{Type: t}}, operands)
			if name[:3] == "Gat" {
				in[operands-1].Number, in[operands-2].Number = true, true
			}
			add(ptx.Map(name, t, in...))
		}
		add(ptx.NLLGradient(t))
		add(ptx.Sequence("RandomKept", t), true)
	}
	for _, t := range []ptx.Type{ptx.Bits8, ptx.Bits16, ptx.Bits32, ptx.Bits64} {
		add(ptx.Unfold(t), true)
		add(ptx.Gather(t), true)
		add(ptx.Scatter(t, false), true)
		add(ptx.Map("Where", t, ptx.Operand{Type: ptx.Bool}, ptx.Operand{Type: t}, ptx.Operand{Type: t, Number: true}))
		add(ptx.Map("Copy", t, ptx.Operand{Type: t}))
	}
	for _, t := range []ptx.Type{ptx.Float32, ptx.Float64} {
		for _, atomic := range []bool{false, true} {
			for _, d := range []ptx.Descent{{Rule: "SGD"}, {Rule: "SGD", Momentum: true, First: true},
				{Rule: "SGD", Momentum: true, Nesterov: true},
				{Rule: "Adam"}, {Rule: "Adam", Decoupled: true}, {Rule: "Adam", AMSGrad: true},
				{Rule: "Adagrad"}, {Rule: "RMSprop"}, {Rule: "RMSprop", Momentum: true, Centered: true}} {
				d.Atomic = atomic
				add(ptx.Descend(d, t))
			}
		}
	}
	return all
}

// mapped returns the kernel of an operation on elements of a type, and a number if it has two
// operands.
func mapped(o *device.Op, t ptx.Type) (ptx.Kernel, bool) {
	in, out := []ptx.Operand{{Type: t}, {Type: t, Number: true}}, t
	if o.Truths {
		out = ptx.Bool
	}
	return ptx.Map(o.Name, out, in[:o.Arity]...)
}

// withoutKernel says why an operation has no kernel of fractions.
var withoutKernel = map[string]string{}

func TestOp_HasAKernel(t *testing.T) {
	if len(device.Ops()) < 40 {
		t.Fatalf("%d operations in the table", len(device.Ops()))
	}
	for _, o := range device.Ops() {
		for _, kind := range []ptx.Type{ptx.Float16, ptx.BFloat16, ptx.Float32, ptx.Float64} {
			if _, ok := mapped(o, kind); ok == (withoutKernel[o.Name] != "") {
				t.Errorf("%v of %v: a kernel %v, and the listed reason is %q", o, kind, ok, withoutKernel[o.Name])
			}
		}
	}
}

func TestKernel_TextsAreWhatTheSimulatorReads(t *testing.T) {
	names := map[string]bool{}
	for _, k := range kernels() {
		text, ended := bytes.CutSuffix(k.Text(), []byte{0})
		m, err := vm.Parse(string(text))
		if err != nil || !ended || (m.Entries["dense"] != nil) != (k.Vector > 0) {
			t.Errorf("%s: %v\n%s", k.Name, err, text)
		}
		if names[k.Name] {
			t.Errorf("two kernels are called %s", k.Name)
		}
		names[k.Name] = true
	}
}

// NVIDIA's own assembler has to take all texts, and to find registers for them without putting any
// into memory. scripts/ptxas runs this.
func TestAllTextsAssemble(t *testing.T) {
	ptxas := os.Getenv("SHOAL_PTXAS")
	if ptxas == "" {
		t.Skip("SHOAL_PTXAS names no ptxas: scripts/ptxas has one")
	}
	for _, target := range []string{"sm_70", "sm_80", "sm_90"} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			dir, most, all := t.TempDir(), 0, kernels()
			src, out := filepath.Join(dir, "k.ptx"), filepath.Join(dir, "k.cubin")
			for _, k := range all {
				if err := os.WriteFile(src, bytes.TrimSuffix(k.Text(), []byte{0}), 0o600); err != nil {
					t.Fatal(err)
				}
				said, err := exec.CommandContext(t.Context(), ptxas, "-v", "-arch="+target, "-o", out,
					src).CombinedOutput()
				if err != nil {
					t.Fatalf("%s: %v\n%s\n%s", k.Name, err, said, k.Text())
				}
				for _, use := range used.FindAllStringSubmatch(string(said), -1) {
					n, err := strconv.Atoi(use[1])
					if most = max(most, n); err != nil {
						t.Error(err)
					}
				}
				if spills := bytes.Count(said, []byte("bytes spill stores")); spills == 0 ||
					bytes.Count(said, []byte(" 0 bytes spill stores")) != spills {
					t.Errorf("%s has values in memory that belong in registers:\n%s", k.Name, said)
				}
			}
			t.Logf("%d texts, at most %d registers", len(all), most)
		})
	}
}

var used = regexp.MustCompile(`Used (\d+) registers`)
