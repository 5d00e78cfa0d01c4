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
	"github.com/shoal-mp/shoal/internal/shm"
	"github.com/shoal-mp/shoal/tensor"
)

func TestFromFile_SharedWritesToTheFile(t *testing.T) {
	local(t)
	path := filepath.Join(t.TempDir(), "weights")
	x, err := tensor.FromFile(path, true, tensor.Int32, 2, 3)
	check(t, err)
	y, err := tensor.FromFile(path, true, tensor.Int32, 2, 3)
	check(t, err)
	first, err := tensor.FromFile(path, true, tensor.Uint8, 4)
	check(t, err)
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
	check(t, x.Share()) // it is
	check(t, errors.Join(x.Close(), y.Close(), first.Close()))
	z, err := tensor.FromFile(path, true, tensor.Int32, 7) // longer
	check(t, err)
	if got := z.Sum(); got != 6*258 {
		t.Errorf("sum %v", got)
	}
	check(t, z.Close())
}

func TestFromFile_PrivateLeavesTheFile(t *testing.T) {
	d := local(t)
	path := filepath.Join(t.TempDir(), "weights")
	check(t, os.WriteFile(path, []byte{1, 2, 3, 4, 5}, 0o400))
	x, err := tensor.FromFile(path, false, tensor.Uint8, 2, 2)
	check(t, err)
	x.AddScalar(1)
	if got := fmt.Sprint(tensor.Data[uint8](x)); got != "[2 3 4 5]" || x.IsShared() {
		t.Errorf("%v", got)
	}
	if b, err := os.ReadFile(path); err != nil || b[0] != 1 {
		t.Errorf("the file has changed: %v %v", b, err)
	}
	y, err := cross(t, d, x) // one copy, into shared memory
	check(t, err)
	if got := fmt.Sprint(tensor.Data[uint8](y)); got != "[2 3 4 5]" || !y.IsShared() || !x.SameStorage(y) ||
		d.Stats().Copied != 4 {
		t.Errorf("%v arrived, %d bytes copied", got, d.Stats().Copied)
	}
	check(t, errors.Join(x.Close(), y.Close()))
}

func TestFromFile_RefusesWhatIsNoFile(t *testing.T) {
	local(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "short")
	check(t, os.WriteFile(path, make([]byte, 10), 0o600))
	_, err := tensor.FromFile(path, false, tensor.Uint8, 11)
	wantErr(t, err, tensor.ErrFile)
	var fe *encoding.FileError
	if !errors.As(err, &fe) || fe.Offset != 10 || !strings.Contains(fe.Error(), "wants 11 bytes") || fe.Path != path {
		t.Errorf("%+v", fe)
	}
	for _, shared := range []bool{true, false} {
		_, err = tensor.FromFile(path, shared, 200, 1)
		wantErr(t, err, tensor.ErrDType)
		_, err = tensor.FromFile(path, shared, tensor.Uint8, -1)
		wantErr(t, err, tensor.ErrLayout)
		_, err = tensor.FromFile(path, shared, tensor.Uint8, 1<<40, 1<<40)
		wantErr(t, err, tensor.ErrLayout)
		_, err = tensor.FromFile(filepath.Join(dir, "none", "file"), shared, tensor.Uint8, 1)
		wantErr(t, err, fs.ErrNotExist)
		if _, err = tensor.FromFile(dir, shared, tensor.Uint8, 1); err == nil {
			t.Error("a directory is a tensor")
		}
		_, err = tensor.FromFile("/dev/null", shared, tensor.Uint8, 1)
		wantErr(t, err, tensor.ErrFile)
	}
	empty, err := tensor.FromFile(path, true, tensor.Uint8, 0)
	check(t, err)
	check(t, empty.Close())
}

// A file that is cut short under a tensor is an error, and not the end of the process.
func TestFromFile_OfAFileCutShortIsAnError(t *testing.T) {
	for _, shared := range []bool{true, false} {
		t.Run(fmt.Sprint("shared ", shared), func(t *testing.T) {
			d := local(t)
			path := filepath.Join(t.TempDir(), "file")
			check(t, os.WriteFile(path, make([]byte, 1<<16), 0o600))
			x, err := tensor.FromFile(path, shared, tensor.Float32, 1<<14)
			check(t, err)
			data := tensor.Data[float32](x)
			wantErr(t, tensor.Catch(func() { x.Sum() }), nil)
			check(t, os.Truncate(path, 100))
			for name, f := range map[string]func(){
				"sum":       func() { x.Sum() },
				"element":   func() { tensor.At[float32](x, 0) },
				"slice":     func() { data[1<<14-1]++ },
				"in a view": func() { x.Narrow(0, 1<<13, 10).Clone() },
			} {
				err := tensor.Catch(f)
				var fe *encoding.FileError
				if !errors.As(err, &fe) || fe.Offset != 100 || !strings.Contains(fe.Error(), "wants 65536 bytes") {
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
			wantErr(t, err, tensor.ErrFile)
			check(t, os.Truncate(path, 1<<16))
			wantErr(t, tensor.Catch(func() { x.Sum(); data[1<<14-1]++ }), nil)
			check(t, x.Close())
		})
	}
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
	d, err := shm.New(shm.Options{Budget: 16 << 20})
	check(t, err)
	use(t, d)
	t.Chdir(t.TempDir())
	x, err := tensor.FromFile("relative", true, tensor.Float64, 1000)
	check(t, err)
	check(t, addToFile.Spawn(watched(t), 2, x.Slice(0, 0, 1000, 2)))
	if got := x.Sum(); got != 1000 {
		t.Errorf("sum %v, want 1000", got)
	}
	y, err := cross(t, d, x)
	check(t, err)
	if !x.SameStorage(y) {
		t.Error("it arrives here as another mapping")
	}
	check(t, y.Close())
	for what, replace := range map[string]func() error{
		"another file": func() error { return os.WriteFile("relative", make([]byte, 8000), 0o600) },
		"a short file": func() error { return os.WriteFile("relative", make([]byte, 10), 0o600) },
		"a pipe":       func() error { return os.Symlink("/dev/null", "relative") },
	} {
		check(t, os.Rename("relative", "moved"))
		check(t, replace())
		if err := addToFile.Spawn(watched(t), 1, x); !errors.Is(err, tensor.ErrFile) {
			t.Errorf("%s in its place: %v", what, err)
		}
		check(t, os.Rename("moved", "relative"))
	}
	check(t, os.Remove("relative"))
	if err := addToFile.Spawn(watched(t), 1, x); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file in its place: %v", err)
	}
	check(t, x.Close())
}
