package hogwild_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jessevdk/go-flags"

	"github.com/shoal-mp/shoal/cmd/internal/hogwild"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/tensor"
)

// few are the images of the set that these tests train on: five batches of 64.
const few = 320

// smallMNIST writes the four files, of digits that are rendered.
func smallMNIST(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, n := range map[string]int{"train": few, "t10k": 64} {
		set := datasets.Digits(n, 1)
		images, labels := idx(3, n, 28, 28), idx(1, n)
		images = append(images, tensor.Data[uint8](set.Tensors[0])...)
		for _, l := range tensor.Data[int64](set.Tensors[1]) {
			labels = append(labels, byte(l))
		}
		for file, b := range map[string][]byte{name + "-images-idx3-ubyte": images,
			name + "-labels-idx1-ubyte": labels} {
			if err := os.WriteFile(filepath.Join(dir, file), b, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// idx is the head of a file of bytes of these dimensions.
func idx(dims ...int) []byte {
	b := binary.BigEndian.AppendUint32(nil, 8<<8|uint32(dims[0]))
	for _, n := range dims[1:] {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return b
}

// A trained is what a command line has come to.
type trained struct {
	hogwild.Result
	log     string
	weights map[string]*tensor.Tensor
}

// train runs the command with these flags on a small set.
func train(t *testing.T, dir string, line string) trained {
	t.Helper()
	var c hogwild.Command
	path := filepath.Join(t.TempDir(), "net.safetensors")
	args := append(strings.Fields(line), "--json", "--data", dir, "--out", path)
	if rest, err := flags.NewParser(&c, flags.None).ParseArgs(args); err != nil || len(rest) > 0 {
		t.Fatalf("%s: %v, %q", line, err, rest)
	}
	o := c.Options()
	var out, log bytes.Buffer
	o.Stdout, o.Stderr = &out, &log
	if err := hogwild.Run(t.Context(), o); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	r := trained{log: log.String(), weights: load(t, path)}
	if err := json.Unmarshal(out.Bytes(), &r.Result); err != nil {
		t.Fatal(err)
	}
	return r
}

// moved is how far b is from a: all differences of their weights, in the order of their names.
func moved(a, b trained) (all []float64) {
	for _, name := range slices.Sorted(maps.Keys(a.weights)) {
		d := tensor.Sub(b.weights[name].To(tensor.Float64), a.weights[name].To(tensor.Float64))
		all = append(all, tensor.Data[float64](d.Contiguous())...)
	}
	return all
}

// ratio is by how much of b's direction a goes.
func ratio(a, b []float64) float64 {
	var ab, bb float64
	for i := range a {
		ab += a[i] * b[i]
		bb += b[i] * b[i]
	}
	return ab / bb
}

func TestRegression_S3_6_FlagsCountWhatIsTrained(t *testing.T) {
	dir := smallMNIST(t)
	for line, want := range map[string]int{
		"--epochs 1 --num-processes 1":                            few,
		"--epochs 3 --num-processes 1":                            3 * few,
		"--epochs 1 --num-processes 3":                            3 * few,
		"--epochs 1 --workers 2 --shard":                          few,
		"--epochs 1 --num-processes 1 --dry-run":                  64,
		"--epochs 2 --num-processes 2 --dry-run":                  4 * 64,
		"--epochs 1 --num-processes 1 --dry-run --batch-size 7":   7,
		"--epochs 1 --num-processes 1 --dry-run --batch-size 999": few,
	} {
		r := train(t, dir, line)
		if r.Samples != want || len(r.PeakBytes) != r.Workers {
			t.Errorf("%s: %d samples by %d workers, want %d", line, r.Samples, r.Workers, want)
		}
	}
}

func TestRegression_S3_6_LogIntervalIsOfBatches(t *testing.T) {
	dir := smallMNIST(t)
	for line, want := range map[string]int{"--log-interval 1": 5, "--log-interval 2": 3, "--log-interval 9": 1} {
		r := train(t, dir, line+" --epochs 1 --num-processes 1")
		if n := len(regexp.MustCompile(`Train Epoch: 1 \[`).FindAllString(r.log, -1)); n != want {
			t.Errorf("%s: %d reports, want %d:\n%s", line, n, want, r.log)
		}
	}
}

func TestRegression_S3_6_SeedLearningRateAndMomentum(t *testing.T) {
	dir := smallMNIST(t)
	one := " --num-processes 1 --threads 1 --dry-run"
	first := train(t, dir, "--epochs 1 --lr 1e-30"+one)
	if again := moved(first, train(t, dir, "--epochs 1 --lr 1e-30"+one)); slices.ContainsFunc(again,
		func(d float64) bool { return d != 0 }) {
		t.Error("a seed does not repeat")
	}
	if other := moved(first, train(t, dir, "--epochs 1 --lr 1e-30 --seed 2"+one)); slices.Index(other, 0) >= 0 {
		t.Error("another seed has the same weights")
	}
	step := moved(first, train(t, dir, "--epochs 1 --lr 0.001"+one))
	if x := ratio(moved(first, train(t, dir, "--epochs 1 --lr 0.002"+one)), step); math.Abs(x-2) > 0.02 {
		t.Errorf("twice the rate goes %v times as far", x)
	}
	// The second step goes half of the first one's way beside its own.
	plain := train(t, dir, "--epochs 2 --lr 0.001 --momentum 0"+one)
	if x := ratio(moved(plain, train(t, dir, "--epochs 2 --lr 0.001 --momentum 0.5"+one)),
		step); math.Abs(x-0.5) > 0.05 {
		t.Errorf("a momentum of 0.5 goes %v of the first step beside", x)
	}
	if x := ratio(moved(plain, train(t, dir, "--epochs 2 --lr 0.001"+one)), step); math.Abs(x-0.5) > 0.05 {
		t.Errorf("the momentum is 0.5 unless it is given: %v", x)
	}
}

func TestRegression_S3_6_TestBatchesAreOneTest(t *testing.T) {
	dir := smallMNIST(t)
	all := train(t, dir, "--epochs 1 --num-processes 1 --threads 1 --dry-run")
	for _, line := range []string{"--test-batch-size 1", "--test-batch-size 7", "--test-batch-size 64"} {
		r := train(t, dir, line+" --epochs 1 --num-processes 1 --threads 1 --dry-run")
		if r.Correct != all.Correct || math.Abs(float64(r.TestLoss-all.TestLoss)) > 1e-5 || !r.Tested {
			t.Errorf("%s: %d right and a loss of %v, and %d and %v at once", line, r.Correct, r.TestLoss,
				all.Correct, all.TestLoss)
		}
	}
}
