package torch

import (
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/tensor"
)

// interop says that `make interop` runs the tests: then a missing PyTorch is a failure and the last
// line is a summary.
var interop = os.Getenv("SHOAL_INTEROP") != ""

// summary counts the cells of the matrix: one for each subtest that needs a Python, with or without
// PyTorch.
var summary struct {
	sync.Mutex
	Torch  []string `json:"torch"`
	Cells  int      `json:"cells"`
	Pass   int      `json:"pass"`
	Skip   int      `json:"skip"`
	Unable []string `json:"unable"` // what a peer cannot do, with any version of Shoal
	Python []string `json:"python"` // without PyTorch
}

func TestMain(m *testing.M) {
	if limit := os.Getenv("SHOAL_TORCH_LINGER"); limit != "" {
		var err error
		if testChild.Linger, err = time.ParseDuration(limit); err != nil {
			panic(err)
		}
	}
	testChild.Main()
	code := m.Run()
	if err := Trim(); err != nil {
		fmt.Println(err)
		code = 1
	}
	if left := leftNames(); len(left) > 0 && code == 0 {
		fmt.Println("left in /dev/shm:", left)
		code = 1
	}
	if interop {
		summary.Torch, summary.Python = versions(torchPythons()), versions(plainPythons())
		line, err := json.Marshal(&summary)
		if err != nil || summary.Pass+len(summary.Unable) != summary.Cells || summary.Pass == 0 {
			code = max(code, 1)
		}
		fmt.Println(string(line))
	}
	os.Exit(code)
}

// leftNames are this process's names in /dev/shm. A manager of PyTorch's removes names two seconds
// after its last process was killed, so leftNames waits for that.
func leftNames() (left []string) {
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		left, _ = filepath.Glob(fmt.Sprintf("%s/%s%d_*", shmDir, namePrefix, os.Getpid()))
		semaphores, _ := filepath.Glob(fmt.Sprintf("%s/%s%s%d_*", shmDir, semaphorePrefix, namePrefix, os.Getpid()))
		left = append(left, semaphores...)
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
	}
}

// cell is a subtest that counts unless it has cells itself.
func cell(t *testing.T, name string, test func(t *testing.T)) {
	before := cells()
	var skipped bool
	passed := t.Run(name, func(t *testing.T) {
		defer func() { skipped = t.Skipped() }()
		test(t)
	})
	if cells() > before {
		return
	}
	summary.Lock()
	defer summary.Unlock()
	summary.Cells++
	if skipped {
		summary.Skip++
	} else if passed {
		summary.Pass++
	}
}

// unable skips a cell that its peer cannot do with any version of Shoal. The summary names it: any
// other skip is a failure of make interop.
func unable(t *testing.T, why string) {
	summary.Lock()
	summary.Unable = append(summary.Unable, t.Name()+": "+why)
	summary.Unlock()
	t.Skip(why)
}

func cells() int {
	summary.Lock()
	defer summary.Unlock()
	return summary.Cells
}

// flat returns the tensors in a value, in Python's order.
func flat(v any) (all []*tensor.Tensor) {
	switch v := v.(type) {
	case *tensor.Tensor:
		return []*tensor.Tensor{v}
	case *autograd.Param:
		return []*tensor.Tensor{v.T}
	case python.Tuple:
		return flat([]any(v))
	case []any:
		for _, item := range v {
			all = append(all, flat(item)...)
		}
	case *python.Dict:
		for _, item := range v.All() {
			all = append(all, flat(item)...)
		}
	}
	return all
}

// elements returns the elements of a tensor, and the real parts of complex numbers.
func elements(t *tensor.Tensor) []float64 {
	return append([]float64{}, tensor.Data[float64](t.Clone().To(tensor.Float64))...)
}

// openFiles counts this process's descriptors.
func openFiles(t testing.TB) int {
	t.Helper()
	n, err := sys.OpenFiles(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func bigOne(bits uint) *big.Int { return new(big.Int).Lsh(big.NewInt(1), bits) }
