package tensor_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/shoal-mp/shoal/internal/foreign"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// foreignTensors makes tensors over memory from elsewhere.
var foreignTensors = foreign.OfTensors[*tensor.Tensor, *tensor.Storage]()

// loan counts its ends.
type loan struct{ ended atomic.Int32 }

func (l *loan) End() error {
	l.ended.Add(1)
	return nil
}

// TestAdopt_EndsALoanOnce ends a loan with the last tensor, once, and makes no tensor after that.
func TestAdopt_EndsALoanOnce(t *testing.T) {
	l := new(loan)
	memory := make([]byte, 64)
	s := foreignTensors.Adopt(memory, l)
	a, err := s.View(tensor.Float32, []int{2, 3}, []int{3, 1}, 0)
	testutil.NoError(t, err)
	b, err := s.View(tensor.Uint8, []int{4}, []int{1}, 0)
	testutil.NoError(t, err)
	a.Fill(1)
	if memory[3] != 0x3f || tensor.At[uint8](b, 3) != 0x3f {
		t.Error("a view does not write to the memory")
	}
	if !a.SameStorage(b) || !a.IsShared() || foreignTensors.LoanOf(s) != foreign.Loan(l) ||
		len(a.Storage().Bytes()) != 64 {
		t.Error("views of one storage are not")
	}
	if err := a.Share(); !errors.Is(err, tensor.ErrForeign) {
		t.Errorf("Share: %v", err)
	}
	testutil.NoError(t, a.Close())
	if l.ended.Load() != 0 {
		t.Error("the loan ended before the last tensor")
	}
	testutil.NoError(t, b.Close())
	testutil.NoError(t, b.Close())
	if n := l.ended.Load(); n != 1 {
		t.Errorf("the loan ended %d times", n)
	}
	if _, err := s.View(tensor.Uint8, []int{1}, []int{1}, 0); !errors.Is(err, tensor.ErrClosed) {
		t.Errorf("a view after the end: %v", err)
	}
}

// TestStorageView_RefusesWhatIsNotInIt refuses tensors that are not in the memory.
func TestStorageView_RefusesWhatIsNotInIt(t *testing.T) {
	s := foreignTensors.Adopt(make([]byte, 64), new(loan))
	hold, err := s.View(tensor.Uint8, []int{0}, []int{1}, 0)
	testutil.NoError(t, err)
	defer hold.Close()
	for _, c := range []struct {
		dt             tensor.DType
		shape, strides []int
		offset         int
		want           error
	}{
		{tensor.Float32, []int{17}, []int{1}, 0, tensor.ErrLayout},
		{tensor.Float32, []int{16}, []int{1}, 1, tensor.ErrLayout},
		{tensor.Float32, []int{2}, []int{16}, 0, tensor.ErrLayout},
		{tensor.Float32, []int{2}, []int{-1}, 1, tensor.ErrLayout},
		{tensor.Float32, []int{-2}, []int{1}, 0, tensor.ErrLayout},
		{tensor.Float32, []int{2}, []int{1}, -1, tensor.ErrLayout},
		{tensor.Float32, []int{2, 2}, []int{1}, 0, tensor.ErrLayout},
		{tensor.Float32, []int{1 << 62, 8}, []int{1 << 62, 1}, 0, tensor.ErrLayout},
		{tensor.Float32, make([]int, 100), make([]int, 100), 0, tensor.ErrLayout},
		{tensor.DType(200), []int{1}, []int{1}, 0, tensor.ErrDType},
	} {
		if _, err := s.View(c.dt, c.shape, c.strides, c.offset); !errors.Is(err, c.want) {
			t.Errorf("%v %v %v %d: %v", c.dt, c.shape, c.strides, c.offset, err)
		}
	}
}

// TestStorageMoveTo_TakesAllViews moves the heap once, with all views, and nothing else.
func TestStorageMoveTo_TakesAllViews(t *testing.T) {
	a := tensor.FromSlice([]int32{1, 2, 3}, 3)
	b := a.Narrow(0, 1, 2)
	memory, l := make([]byte, 12), new(loan)
	testutil.NoError(t, foreignTensors.MoveTo(a.Storage(), memory, l))
	a.Fill(9)
	if memory[4] != 9 || tensor.At[int32](b, 0) != 9 {
		t.Error("a view did not move")
	}
	if err := foreignTensors.MoveTo(a.Storage(), memory, new(loan)); !errors.Is(err, tensor.ErrForeign) {
		t.Errorf("the second time: %v", err)
	}
	testutil.NoError(t, a.Close())
	testutil.NoError(t, b.Close())
	if l.ended.Load() != 1 {
		t.Error("the loan has not ended")
	}
}

// TestAdopt_EndsAForgottenLoan ends with the garbage collector.
func TestAdopt_EndsAForgottenLoan(t *testing.T) {
	l := new(loan)
	func() {
		_, err := foreignTensors.Adopt(make([]byte, 16), l).View(tensor.Uint8, []int{16}, []int{1}, 0)
		testutil.NoError(t, err)
	}()
	testutil.Eventually(t, func() bool { runtime.GC(); return l.ended.Load() != 0 },
		"a forgotten tensor keeps its loan")
}

// TestMapFile_FindsTensorsByTheirPlaces maps a file, and refuses bytes that it does not have.
func TestMapFile_FindsTensorsByTheirPlaces(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "map"))
	testutil.NoError(t, err)
	_, err = f.WriteString("header: \x01\x02\x03\x04")
	testutil.NoError(t, err)
	m, err := foreignTensors.MapFile(f)
	testutil.NoError(t, err)
	defer m.Close()
	bytes, err := m.Storage(8, 4)
	testutil.NoError(t, err)
	defer bytes.Close()
	x, err := bytes.Storage().View(tensor.Uint8, []int{2, 2}, nil, 0)
	testutil.NoError(t, err)
	defer x.Close()
	if !tensor.Equal(x, tensor.FromSlice([]uint8{1, 2, 3, 4}, 2, 2)) {
		t.Error(x)
	}
	if _, err := m.Storage(8, 5); !errors.Is(err, tensor.ErrLayout) {
		t.Error(err)
	}
}

// What is read from a stream takes memory as it comes, and arrives whole.
func TestReadFrom_GrowsWithWhatComes(t *testing.T) {
	tensors := foreign.OfTensors[*tensor.Tensor, *tensor.Storage]()
	for _, n := range []int{0, 1, 1 << 20, 1<<20 + 1, 8<<20 + 7} {
		sent := make([]byte, n)
		rand.NewChaCha8([32]byte{1}).Read(sent)
		x, err := tensors.ReadFrom(iotest.HalfReader(bytes.NewReader(sent)), n)
		testutil.NoError(t, err)
		if !bytes.Equal(tensor.Bytes(x), sent) {
			t.Errorf("%d bytes are others", n)
		}
		x.Close()
		if n == 0 {
			continue
		}
		if _, err := tensors.ReadFrom(bytes.NewReader(sent[:n-1]), n); err != io.EOF && err != io.ErrUnexpectedEOF {
			t.Errorf("%d of %d bytes: %v", n-1, n, err)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := tensors.ReadFrom(bytes.NewReader(make([]byte, 2<<20)), 1<<40)
	runtime.ReadMemStats(&after)
	if err != io.ErrUnexpectedEOF {
		t.Error(err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 32<<20 {
		t.Errorf("2 MiB of a claimed TiB took %d bytes", took)
	}
}
