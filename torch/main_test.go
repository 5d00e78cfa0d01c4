package torch

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/tensor"
)

// interop says what `make interop` has found: with it, a missing PyTorch is a failure and the last line is a summary.
var interop = os.Getenv("SHOAL_INTEROP") != ""

// summary counts the cells of the matrix: one for each subtest that needs a PyTorch.
var summary struct {
	sync.Mutex
	Torch []string `json:"torch"`
	Cells int      `json:"cells"`
	Pass  int      `json:"pass"`
	Skip  int      `json:"skip"`
}

func TestMain(m *testing.M) {
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
		for _, py := range pythons() {
			summary.Torch = append(summary.Torch, py.version)
		}
		line, err := json.Marshal(&summary)
		if err != nil || summary.Pass != summary.Cells || summary.Cells == 0 {
			code = max(code, 1)
		}
		fmt.Println(string(line))
	}
	os.Exit(code)
}

// leftNames are this process's names in /dev/shm, when those are gone that a manager of PyTorch's removes two seconds after
// its last process was killed.
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

// A python is an interpreter that has a PyTorch.
type python struct{ path, version string }

// pythons are those of SHOAL_TORCH_PYTHONS, paths with colons between them, or else python3.
var pythons = sync.OnceValue(func() (found []python) {
	paths := filepath.SplitList(os.Getenv("SHOAL_TORCH_PYTHONS"))
	if len(paths) == 0 {
		paths = []string{"python3"}
	}
	for _, p := range paths {
		out, err := exec.Command(p, "-c", "import torch; print(torch.__version__)").Output()
		if err == nil {
			found = append(found, python{p, strings.TrimSpace(string(out))})
		}
	}
	return found
})

// eachTorch runs a test with every PyTorch there is, and counts it.
func eachTorch(t *testing.T, test func(t *testing.T, py python)) {
	if len(pythons()) == 0 {
		if interop {
			t.Fatal("no PyTorch was found in SHOAL_TORCH_PYTHONS")
		}
		t.Skip("interoperability was not tested: python3 has no PyTorch (make interop installs one, SHOAL_TORCH_PYTHONS names one)")
	}
	for _, py := range pythons() {
		cell(t, py.version, func(t *testing.T) { test(t, py) })
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

func cells() int {
	summary.Lock()
	defer summary.Unlock()
	return summary.Cells
}

// testContext ends what hangs.
func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// A talk is a conversation with testdata/peer.py.
type talk struct {
	t   testing.TB
	ctx context.Context
	p   *Process
	*Conn
}

// converse starts peer.py with a sharing strategy of PyTorch's own.
func converse(t testing.TB, py python, opts Options, theirs string) *talk {
	t.Helper()
	ctx := testContext(t)
	p, err := Python{Path: py.path, Dir: "testdata", Options: opts, Env: pythonEnv()}.Spawn(ctx, "peer:run", theirs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return &talk{t, ctx, p, p.Conn}
}

// pythonEnv keeps Python from writing beside its sources.
func pythonEnv() []string {
	return append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONWARNINGS=ignore")
}

// ask sends a request and returns the answer.
func (k *talk) ask(request ...any) any {
	k.t.Helper()
	if err := k.Send(k.ctx, Tuple(request)); err != nil {
		k.t.Fatalf("ask %v: %v", request[0], err)
	}
	v, err := k.Recv(k.ctx)
	if err != nil {
		k.t.Fatalf("answer to %v: %v", request[0], err)
	}
	return v
}

// asked is ask for an answer of type T.
func asked[T any](k *talk, request ...any) (v T) {
	k.t.Helper()
	if err := assign(&v, k.ask(request...)); err != nil {
		k.t.Fatalf("answer to %v: %v", request[0], err)
	}
	return v
}

// bye ends the conversation and wants a good end of the process.
func (k *talk) bye() {
	k.t.Helper()
	k.Close()
	if err := k.p.Wait(k.ctx); err != nil {
		k.t.Errorf("%+v", err)
	}
}

// flat returns the tensors in a value, in Python's order.
func flat(v any) (all []*tensor.Tensor) {
	switch v := v.(type) {
	case *tensor.Tensor:
		return []*tensor.Tensor{v}
	case *autograd.Param:
		return []*tensor.Tensor{v.T}
	case Tuple:
		return flat([]any(v))
	case []any:
		for _, item := range v {
			all = append(all, flat(item)...)
		}
	case *Dict:
		for _, item := range v.All() {
			all = append(all, flat(item)...)
		}
	}
	return all
}

// elements returns what is in a tensor; of complex numbers the real parts.
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
