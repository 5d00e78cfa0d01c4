package tokens_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/tokens"
	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/encoding/npy"
	"github.com/shoal-mp/shoal/tensor"
)

// written is a file of the numbers from 0 on, as a type of tokens.
func written(t testing.TB, dt tensor.DType, n int) string {
	var b []byte
	for i := range n {
		switch dt.Size() {
		case 2:
			b = binary.LittleEndian.AppendUint16(b, uint16(i))
		case 4:
			b = binary.LittleEndian.AppendUint32(b, uint32(i))
		default:
			b = binary.LittleEndian.AppendUint64(b, uint64(i))
		}
	}
	path := filepath.Join(t.TempDir(), "train.bin")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func count(from, n int) []int64 {
	all := make([]int64, n)
	for i := range all {
		all[i] = int64(from + i)
	}
	return all
}

// windows opens a set and compares all its windows, one by one and gathered.
func windows(t *testing.T, path string, o tokens.Options, froms ...int) {
	t.Helper()
	s, err := tokens.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Len() != len(froms) {
		t.Fatalf("%d windows, not %d", s.Len(), len(froms))
	}
	batch := data.Batch{tensor.New(tensor.Int64, s.Len(), o.Length), tensor.New(tensor.Int64, s.Len(), o.Length)}
	if err := s.(data.Gatherer).Gather(t.Context(), indices(s.Len()), batch); err != nil {
		t.Fatal(err)
	}
	for i, from := range froms {
		one, err := s.Get(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		for k, want := range [][]int64{count(from, o.Length), count(from+1, o.Length)} {
			if got := tensor.Data[int64](one[k]); !reflect.DeepEqual(got, want) {
				t.Errorf("window %d: %v, not %v", i, got, want)
			}
			if got := tensor.Data[int64](batch[k].Select(0, i).Clone()); !reflect.DeepEqual(got, want) {
				t.Errorf("window %d, gathered: %v, not %v", i, got, want)
			}
		}
	}
}

func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func TestWindowsOfAFile(t *testing.T) {
	for _, dt := range []tensor.DType{tensor.Uint16, tensor.Uint32, tensor.Int32, tensor.Int64} {
		t.Run(dt.String(), func(t *testing.T) {
			windows(t, written(t, dt, 13), tokens.Options{Length: 4, DType: dt, Vocabulary: 13}, 0, 4, 8)
			windows(t, written(t, dt, 12), tokens.Options{Length: 4, DType: dt}, 0, 4) // the last has no token after it
			windows(t, written(t, dt, 7), tokens.Options{Length: 4, Stride: 1, DType: dt}, 0, 1, 2)
		})
	}
	windows(t, written(t, tensor.Uint16, 9), tokens.Options{Length: 8}, 0) // the usual type
	path := filepath.Join(t.TempDir(), "train.npy")
	if err := npy.Save(path, tensor.FromSlice([]uint16{0, 1, 2, 3, 4}, 5)); err != nil {
		t.Fatal(err)
	}
	windows(t, path, tokens.Options{Length: 2}, 0, 2)
}

func TestFilesWithoutWindowsAreErrors(t *testing.T) {
	matrix := filepath.Join(t.TempDir(), "matrix.npy")
	if err := npy.Save(matrix, tensor.New(tensor.Int64, 3, 3)); err != nil {
		t.Fatal(err)
	}
	numbers := filepath.Join(t.TempDir(), "numbers.npy")
	if err := npy.Save(numbers, tensor.New(tensor.Float32, 30)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		o    tokens.Options
		want error
	}{
		{written(t, tensor.Uint16, 4), tokens.Options{Length: 4}, tokens.ErrShort},
		{written(t, tensor.Uint16, 9), tokens.Options{Length: 4, DType: tensor.Uint32}, tokens.ErrType},
		{written(t, tensor.Uint16, 0), tokens.Options{Length: 4}, tokens.ErrType},
		{written(t, tensor.Uint16, 9), tokens.Options{Length: 4, DType: tensor.Float32}, tokens.ErrType},
		{written(t, tensor.Uint16, 9), tokens.Options{}, tokens.ErrOption},
		{written(t, tensor.Uint16, 9), tokens.Options{Length: 4, Stride: -1}, tokens.ErrOption},
		{"nowhere.bin", tokens.Options{Length: 4}, os.ErrNotExist},
		{matrix, tokens.Options{Length: 4}, tokens.ErrType},
		{numbers, tokens.Options{Length: 4}, tokens.ErrType},
	} {
		if _, err := tokens.Open(c.path, c.o); !errors.Is(err, c.want) {
			t.Errorf("%s, %+v: %v, not %v", c.path, c.o, err, c.want)
		}
	}
}

func TestATokenBeyondTheVocabularyIsNamed(t *testing.T) {
	s, err := tokens.Open(written(t, tensor.Uint16, 13), tokens.Options{Length: 4, Vocabulary: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Get(t.Context(), 1); err != nil {
		t.Errorf("tokens 4 to 8: %v", err)
	}
	_, err = s.Get(t.Context(), 2)
	at, ok := errors.AsType[*encoding.FileError](err)
	if !ok || at.Offset != 20 || !errors.Is(err, tokens.ErrVocabulary) {
		t.Errorf("%v: want byte 20", err)
	}
	for _, i := range []int{-1, 3} {
		if _, err := s.Get(t.Context(), i); err == nil {
			t.Errorf("window %d was there", i)
		}
	}
}

func TestAFileThatIsCutShortIsAnError(t *testing.T) {
	path := written(t, tensor.Uint16, 1<<16)
	s, err := tokens.Open(path, tokens.Options{Length: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := os.Truncate(path, 10); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), s.Len()-1); err == nil {
		t.Error("a window that is gone was read")
	}
}

func ExampleOpen() {
	dir, _ := os.MkdirTemp("", "tokens")
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "train.bin")
	os.WriteFile(path, []byte{1, 0, 2, 0, 3, 0, 4, 0, 5, 0}, 0o600) // uint16

	train, err := tokens.Open(path, tokens.Options{Length: 2, Vocabulary: 50257})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer train.Close()
	sample, err := train.Get(context.Background(), 1)
	fmt.Println(train.Len(), tensor.Data[int64](sample[0]), tensor.Data[int64](sample[1]), err)
	// Output: 2 [3 4] [4 5] <nil>
}

// FuzzOpen wants an error or windows of any bytes.
func FuzzOpen(f *testing.F) {
	f.Add([]byte{1, 0, 2, 0, 3, 0}, false, 2)
	f.Add([]byte("\x93NUMPY\x01\x00v\x00{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }"), true, 1)
	f.Fuzz(func(t *testing.T, b []byte, array bool, length int) {
		path := filepath.Join(t.TempDir(), map[bool]string{false: "x.bin", true: "x.npy"}[array])
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := tokens.Open(path, tokens.Options{Length: length, Vocabulary: 100})
		if err != nil {
			return
		}
		defer s.Close()
		for _, i := range []int{0, s.Len() - 1} {
			if one, err := s.Get(t.Context(), i); err == nil && one[0].Numel() != length {
				t.Fatalf("window %d has %d tokens", i, one[0].Numel())
			}
		}
	})
}
