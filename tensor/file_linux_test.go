package tensor_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// fromFiles are the functions that map a file.
var fromFiles = map[string]func(path string, dt tensor.DType, shape ...int) (*tensor.Tensor, error){
	"private": tensor.FromFile, "shared": tensor.FromFileShared,
}

func TestFromFile_SharedWritesToTheFile(t *testing.T) {
	local(t)
	path := filepath.Join(t.TempDir(), "weights")
	x, err := tensor.FromFileShared(path, tensor.Int32, 2, 3)
	testutil.NoError(t, err)
	y, err := tensor.FromFileShared(path, tensor.Int32, 2, 3)
	testutil.NoError(t, err)
	first, err := tensor.FromFileShared(path, tensor.Uint8, 4)
	testutil.NoError(t, err)
	x.Fill(258)
	if got := tensor.Data[int32](y)[5]; got != 258 || !x.SameStorage(y) || !x.IsShared() {
		t.Errorf("the same file again has %v", got)
	}
	if got := fmt.Sprint(tensor.Data[uint8](first)); got != "[2 1 0 0]" {
		t.Errorf("its first bytes are %v", got)
	}
	if b, err := os.ReadFile(path); err != nil || len(b) != 24 || b[0] != 2 || b[21] != 1 {
		t.Errorf("the file has %d bytes %v: %v", len(b), b, err)
	}
	testutil.NoError(t, x.Share()) // it is
	testutil.NoError(t, errors.Join(x.Close(), y.Close(), first.Close()))
	z, err := tensor.FromFileShared(path, tensor.Int32, 7) // longer
	testutil.NoError(t, err)
	if got := z.Sum(); got != 6*258 {
		t.Errorf("sum %v", got)
	}
	testutil.NoError(t, z.Close())
}

func TestFromFile_PrivateLeavesTheFile(t *testing.T) {
	d := local(t)
	path := filepath.Join(t.TempDir(), "weights")
	testutil.NoError(t, os.WriteFile(path, []byte{1, 2, 3, 4, 5}, 0o400))
	x, err := tensor.FromFile(path, tensor.Uint8, 2, 2)
	testutil.NoError(t, err)
	x.AddScalarInPlace(1)
	if got := fmt.Sprint(tensor.Data[uint8](x)); got != "[2 3 4 5]" || x.IsShared() {
		t.Errorf("%v", got)
	}
	if b, err := os.ReadFile(path); err != nil || b[0] != 1 {
		t.Errorf("the file has changed: %v %v", b, err)
	}
	y, err := cross(t, d, x) // one copy, into shared memory
	testutil.NoError(t, err)
	if got := fmt.Sprint(tensor.Data[uint8](y)); got != "[2 3 4 5]" || !y.IsShared() || !x.SameStorage(y) ||
		d.Stats().Copied != 4 {
		t.Errorf("%v arrived, %d bytes copied", got, d.Stats().Copied)
	}
	testutil.NoError(t, errors.Join(x.Close(), y.Close()))
}

func TestFromFile_RefusesWhatIsNoFile(t *testing.T) {
	local(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "short")
	testutil.NoError(t, os.WriteFile(path, make([]byte, 10), 0o600))
	_, err := tensor.FromFile(path, tensor.Uint8, 11)
	testutil.ErrorIs(t, err, tensor.ErrFile)
	var fe *encoding.FileError
	if !errors.As(err, &fe) || fe.Offset != 10 || !strings.Contains(fe.Error(), "want 11 bytes") || fe.Path != path {
		t.Errorf("%+v", fe)
	}
	for _, fromFile := range fromFiles {
		_, err = fromFile(path, 200, 1)
		testutil.ErrorIs(t, err, tensor.ErrDType)
		_, err = fromFile(path, tensor.Uint8, -1)
		testutil.ErrorIs(t, err, tensor.ErrLayout)
		_, err = fromFile(path, tensor.Uint8, 1<<40, 1<<40)
		testutil.ErrorIs(t, err, tensor.ErrLayout)
		_, err = fromFile(filepath.Join(dir, "none", "file"), tensor.Uint8, 1)
		testutil.ErrorIs(t, err, fs.ErrNotExist)
		if _, err = fromFile(dir, tensor.Uint8, 1); err == nil {
			t.Error("a directory is a tensor")
		}
		_, err = fromFile("/dev/null", tensor.Uint8, 1)
		testutil.ErrorIs(t, err, tensor.ErrFile)
	}
	empty, err := tensor.FromFileShared(path, tensor.Uint8, 0)
	testutil.NoError(t, err)
	testutil.NoError(t, empty.Close())
}

// A file that is cut short under a tensor is an error, and not the end of the process.
func TestFromFile_OfAFileCutShortIsAnError(t *testing.T) {
	for name, fromFile := range fromFiles {
		t.Run(name, func(t *testing.T) {
			d := local(t)
			path := filepath.Join(t.TempDir(), "file")
			testutil.NoError(t, os.WriteFile(path, make([]byte, 1<<16), 0o600))
			x, err := fromFile(path, tensor.Float32, 1<<14)
			testutil.NoError(t, err)
			data := tensor.Data[float32](x)
			testutil.ErrorIs(t, tensor.Catch(func() { x.Sum() }), nil)
			testutil.NoError(t, os.Truncate(path, 100))
			for name, f := range map[string]func(){
				"sum":       func() { x.Sum() },
				"element":   func() { tensor.At[float32](x, 0) },
				"slice":     func() { data[1<<14-1]++ },
				"in a view": func() { x.Narrow(0, 1<<13, 10).Clone() },
			} {
				err := tensor.Catch(f)
				var fe *encoding.FileError
				if !errors.As(err, &fe) || fe.Offset != 100 || !strings.Contains(fe.Error(), "want 65536 bytes") {
					t.Errorf("%s: %v", name, err)
				}
			}
			func() {
				defer func() {
					if _, ok := recover().(*encoding.FileError); !ok {
						t.Error("an operation panics with something else")
					}
				}()
				x.Sum()
			}()
			_, err = cross(t, d, x)
			testutil.ErrorIs(t, err, tensor.ErrFile)
			testutil.NoError(t, os.Truncate(path, 1<<16))
			testutil.ErrorIs(t, tensor.Catch(func() { x.Sum(); data[1<<14-1]++ }), nil)
			testutil.NoError(t, x.Close())
		})
	}
}

// The fault may be on another goroutine than the caller's.
func TestCatch_ReturnsTheFaultOfAnyThread(t *testing.T) {
	defer kernel.SetThreads(kernel.Threads())
	local(t)
	const n = 1 << 20
	path := filepath.Join(t.TempDir(), "file")
	testutil.NoError(t, os.WriteFile(path, make([]byte, 4*n), 0o600))
	x, err := tensor.FromFileShared(path, tensor.Float32, n)
	testutil.NoError(t, err)
	data, y := tensor.Data[float32](x), make([]float32, n)
	testutil.NoError(t, os.Truncate(path, 1<<16))
	for threads := 1; threads <= 4; threads++ {
		kernel.SetThreads(threads)
		testutil.ErrorIs(t, tensor.Catch(func() { kernel.Exp(data, y) }), tensor.ErrFile)
		testutil.ErrorIs(t, tensor.Catch(func() { kernel.Exp(y, data) }), tensor.ErrFile)
	}
	testutil.NoError(t, os.Truncate(path, 4*n))
	testutil.ErrorIs(t, tensor.Catch(func() { kernel.Exp(y, data) }), nil)
	testutil.NoError(t, x.Close())
}

func TestCatch_LetsMistakesGo(t *testing.T) {
	for _, p := range []any{"a sentence", 7} {
		func() {
			defer func() {
				if got := recover(); got != p {
					t.Errorf("%v arrived", got)
				}
			}()
			tensor.Catch(func() { panic(p) })
		}()
	}
	defer func() {
		if recover() == nil {
			t.Error("an index out of range went by")
		}
	}()
	var none []int
	tensor.Catch(func() { none[len(os.Args)]++ })
}

var addToFile = shoal.Register("addToFile", func(ctx context.Context, rank int, x *tensor.Tensor) error {
	x.AddScalarAtomic(1)
	return x.Close()
})

func TestFromFile_Travels(t *testing.T) {
	d, err := arena.New(arena.Options{Budget: 16 << 20})
	testutil.NoError(t, err)
	use(t, d)
	t.Chdir(t.TempDir())
	x, err := tensor.FromFileShared("relative", tensor.Float64, 1000)
	testutil.NoError(t, err)
	testutil.NoError(t, addToFile.Spawn(testutil.Context(t), 2, x.Slice(0, 0, 1000, 2)))
	if got := x.Sum(); got != 1000 {
		t.Errorf("sum %v, want 1000", got)
	}
	y, err := cross(t, d, x)
	testutil.NoError(t, err)
	if !x.SameStorage(y) {
		t.Error("it arrives here as another mapping")
	}
	testutil.NoError(t, y.Close())
	for what, replace := range map[string]func() error{
		"another file": func() error { return os.WriteFile("relative", make([]byte, 8000), 0o600) },
		"a short file": func() error { return os.WriteFile("relative", make([]byte, 10), 0o600) },
		"a pipe":       func() error { return os.Symlink("/dev/null", "relative") },
	} {
		testutil.NoError(t, os.Rename("relative", "moved"))
		testutil.NoError(t, replace())
		if err := addToFile.Spawn(testutil.Context(t), 1, x); !errors.Is(err, tensor.ErrFile) {
			t.Errorf("%s in its place: %v", what, err)
		}
		testutil.NoError(t, os.Rename("moved", "relative"))
	}
	testutil.NoError(t, os.Remove("relative"))
	if err := addToFile.Spawn(testutil.Context(t), 1, x); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file in its place: %v", err)
	}
	testutil.NoError(t, x.Close())
}
