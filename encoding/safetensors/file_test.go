package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/encoding/safetensors"
	"github.com/shoal-mp/shoal/tensor"
)

// file is the bytes of a file with this header and so many zeros after it.
func file(header string, body int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, body)...)
}

func write(t testing.TB, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t testing.TB, path string) *safetensors.File {
	t.Helper()
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestSave_IsRead(t *testing.T) {
	tensors := map[string]*tensor.Tensor{
		"conv1.weight": tensor.Arange(tensor.Float32, 0, 24, 1).Reshape(2, 3, 4),
		"transposed":   tensor.Arange(tensor.Float64, 0, 6, 1).Reshape(2, 3).T(),
		"scalar":       tensor.Scalar(tensor.Int64, -5),
		"empty":        tensor.New(tensor.Float32, 3, 0),
		"mask":         tensor.FromSlice([]bool{true, false, true}, 3),
		"ünï \"<c>\n":  tensor.Full(tensor.BFloat16, 1.5, 2),
	}
	path, meta := filepath.Join(t.TempDir(), "m"), map[string]string{"epoch": "3", "": "é"}
	if err := safetensors.SaveWith(path, tensors, safetensors.SaveOptions{Metadata: meta}); err != nil {
		t.Fatal(err)
	}
	f := open(t, path)
	got, err := f.Tensors()
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(tensors) {
		t.Fatalf("read %d tensors, want %d", len(got), len(tensors))
	}
	for name, want := range tensors {
		if g := got[name]; g == nil || g.DType() != want.DType() || !slices.Equal(g.Shape(), want.Shape()) ||
			!tensor.Equal(g, want) {
			t.Errorf("%q is %v, want %v", name, g, want)
		}
	}
	if m := f.Metadata; len(m) != 2 || m["epoch"] != "3" || m[""] != "é" {
		t.Errorf("metadata = %q", m)
	}
}

// The bytes that the format's own specification asks for, so that others read what is saved here.
func TestSave_LaysTheFileOutAsTheFormatSays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m")
	err := safetensors.Save(path, map[string]*tensor.Tensor{
		"small": tensor.FromSlice([]uint8{7}, 1),
		"b":     tensor.FromSlice([]float32{2}, 1),
		"a":     tensor.FromSlice([]float32{1}, 1),
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	header := `{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},` +
		`"small":{"dtype":"U8","shape":[1],"data_offsets":[8,9]}}`
	header += strings.Repeat(" ", (8-len(header)%8)%8)
	want := append(file(header, 0), 0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 7)
	if !bytes.Equal(got, want) {
		t.Fatalf("file is\n%q, want\n%q", got, want)
	}
}

func TestOpen_HostileFilesAreErrorsThatSayWhatIsWrong(t *testing.T) {
	const entry = `{"dtype":"F32","shape":[2],"data_offsets":[0,8]}`
	long := binary.LittleEndian.AppendUint64(nil, 1<<63)
	for name, c := range map[string]struct {
		file []byte
		want error
	}{
		"empty file":              {nil, safetensors.ErrHeader},
		"seven bytes":             {make([]byte, 7), safetensors.ErrHeader},
		"empty header":            {file("", 0), safetensors.ErrHeader},
		"length overflows":        {append(long, '{', '}'), safetensors.ErrHeader},
		"length beyond the file":  {append(binary.LittleEndian.AppendUint64(nil, 3), '{', '}'), safetensors.ErrHeader},
		"space before the header": {file(" {}", 0), safetensors.ErrHeader},
		"not an object":           {file("[]", 0), safetensors.ErrHeader},
		"two values":              {file("{}{}", 0), safetensors.ErrHeader},
		"half a header":           {file(`{"a":{"dtype":`, 0), safetensors.ErrHeader},
		"not UTF-8":               {file("{\"\xff\":"+entry+"}", 8), safetensors.ErrHeader},
		"duplicate tensor":        {file(`{"a":`+entry+`,"a":`+entry+`}`, 8), safetensors.ErrHeader},
		"duplicate by escape":     {file(`{"a":`+entry+`,"\u0061":`+entry+`}`, 8), safetensors.ErrHeader},
		"duplicate field": {file(
			`{"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 8), safetensors.ErrHeader},
		"unknown field": {file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}}`, 8),
			safetensors.ErrHeader},
		"field in capitals": {file(`{"a":{"DType":"F32","shape":[2],"data_offsets":[0,8]}}`, 8),
			safetensors.ErrHeader},
		"missing field": {file(`{"a":{"dtype":"F32","shape":[2]}}`, 8), safetensors.ErrHeader},
		"negative size": {file(`{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}`, 8),
			safetensors.ErrHeader},
		"fractional size": {file(`{"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}}`, 8),
			safetensors.ErrHeader},
		"size beyond int": {file(
			`{"a":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,8]}}`, 8), safetensors.ErrHeader},
		"three offsets": {file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}}`, 8),
			safetensors.ErrHeader},
		"metadata is no text": {file(`{"__metadata__":{"a":1}}`, 0), safetensors.ErrHeader},
		"unknown dtype": {file(`{"a":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}}`, 8),
			safetensors.ErrDType},
		"wrong dtype": {file(`{"a":{"dtype":"F64","shape":[2],"data_offsets":[0,8]}}`, 8),
			safetensors.ErrOffsets},
		"product overflows": {file(
			`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, 0), safetensors.ErrOffsets},
		"overflow beside a zero": {file(
			`{"a":{"dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0]}}`, 0), safetensors.ErrOffsets},
		"overlap": {file(`{"a":`+entry+
			`,"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}`, 12), safetensors.ErrOffsets},
		"the same bytes twice": {file(`{"a":`+entry+`,"b":`+entry+`}`, 8), safetensors.ErrOffsets},
		"hole": {file(`{"a":`+entry+
			`,"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}}`, 16), safetensors.ErrOffsets},
		"hole at the beginning": {file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}`, 16),
			safetensors.ErrOffsets},
		"end before begin": {file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}`, 8),
			safetensors.ErrOffsets},
		"truncated":           {file(`{"a":`+entry+`}`, 7), safetensors.ErrOffsets},
		"bytes of no tensor":  {file(`{"a":`+entry+`}`, 9), safetensors.ErrOffsets},
		"bytes of no tensors": {file(`{}`, 1), safetensors.ErrOffsets},
		"deeply nested":       {file(`{"a":`+strings.Repeat("[", 1<<16), 0), safetensors.ErrHeader},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, c.file)
			f, err := safetensors.Open(path)
			if err == nil {
				f.Close()
				t.Fatal("opened")
			}
			format, ok := errors.AsType[*encoding.FileError](err)
			if !ok || !errors.Is(err, c.want) || format.Path != path {
				t.Fatalf("error is %v, want a FormatError of %s that wraps %v", err, path, c.want)
			}
		})
	}
}

func TestFile_ABoolIsZeroOrOne(t *testing.T) {
	b := file(`{"a":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}}`, 0)
	a, err := open(t, write(t, append(b, 0, 1, 200))).Tensor("a")
	if err != nil {
		t.Fatal(err)
	}
	if got := tensor.Bytes(a); !bytes.Equal(got, []byte{0, 1, 1}) {
		t.Fatalf("bools are %v", got)
	}
}

func TestOpen_AMissingFileAndAMissingNameAreErrors(t *testing.T) {
	if _, err := safetensors.Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open: %v", err)
	}
	if _, err := open(t, write(t, file("{}", 0))).Tensor("a"); !errors.Is(err, safetensors.ErrName) {
		t.Errorf("tensor: %v", err)
	}
}

func TestSave_FailedLeavesTheOldFileAndNoOther(t *testing.T) {
	path := write(t, []byte("old"))
	for name, want := range map[string]error{"\xff": safetensors.ErrName, "__metadata__": safetensors.ErrName,
		"complex": safetensors.ErrDType} {
		dt := tensor.Float32
		if name == "complex" {
			dt = tensor.Complex128
		}
		if err := safetensors.Save(path, map[string]*tensor.Tensor{name: tensor.New(dt, 1)}); !errors.Is(err, want) {
			t.Errorf("save %q: %v", name, err)
		}
	}
	directory := filepath.Dir(path)
	if err := os.Mkdir(filepath.Join(directory, "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := safetensors.Save(filepath.Join(directory, "taken"), nil); err == nil {
		t.Error("a directory was replaced")
	}
	entries, err := os.ReadDir(directory)
	if err != nil || len(entries) != 2 {
		t.Errorf("the directory has %v, %v", entries, err)
	}
	if b, _ := os.ReadFile(path); string(b) != "old" {
		t.Errorf("the old file is %q", b)
	}
}

// FuzzOpen: whatever the bytes, Open fails or all tensors can be read and saved again.
func FuzzOpen(f *testing.F) {
	f.Add(file(`{}`, 0))
	f.Add(
		file(
			`{"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"BOOL","shape":[],"data_offsets":[8,9]}}`, 9))
	f.Add(file(`{"a":{"dtype":"I64","shape":[0,3],"data_offsets":[0,0]}}`, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := safetensors.Open(write(t, b))
		if err != nil {
			if _, ok := errors.AsType[*encoding.FileError](err); !ok {
				t.Fatalf("error is %v, want a FormatError", err)
			}
			return
		}
		defer file.Close()
		tensors, err := file.Tensors()
		if err != nil {
			t.Fatal(err)
		}
		again := filepath.Join(t.TempDir(), "again")
		if err := safetensors.SaveWith(again, tensors, safetensors.SaveOptions{Metadata: file.Metadata}); err != nil {
			t.Fatal(err)
		}
		if got := open(t, again).Names(); len(got) != len(tensors) {
			t.Fatalf("%d tensors became %d", len(tensors), len(got))
		}
	})
}

// A header that claims more than comes takes memory for what comes, however much is allowed.
func TestDecode_TakesNoMoreThanComes(t *testing.T) {
	for _, claim := range []int{16 << 30, 1 << 40} {
		for _, most := range []int64{0, math.MaxInt64} {
			text := fmt.Sprintf(`{"x":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}`, claim, claim)
			b := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
			b = append(append(b, text...), "ten bytes."...)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _, err := safetensors.Decode(bytes.NewReader(b), safetensors.Options{MaxBytes: most})
			runtime.ReadMemStats(&after)
			if !errors.Is(err, io.ErrUnexpectedEOF) && !(most == 0 && errors.Is(err, safetensors.ErrLimit)) {
				t.Errorf("%d bytes are claimed, %d allowed: %v", claim, most, err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 {
				t.Errorf("%d bytes are claimed, and ten come: they took %d", claim, took)
			}
		}
	}
}

// FuzzDecode: a stream has the tensors that a file of the same bytes has, or is an error of a type.
func FuzzDecode(f *testing.F) {
	f.Add(file(`{}`, 0))
	f.Add(
		file(
			`{"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"BOOL","shape":[],"data_offsets":[8,9]}}`, 9))
	f.Add(file(`{"a":{"dtype":"F32","shape":[4294967296],"data_offsets":[0,17179869184]}}`, 9))
	f.Fuzz(func(t *testing.T, b []byte) {
		all, _, err := safetensors.Decode(bytes.NewReader(b), safetensors.Options{MaxBytes: 1 << 40})
		if err != nil {
			if _, ok := errors.AsType[*encoding.FileError](err); !ok {
				t.Fatalf("error is %v, want a FileError", err)
			}
			return
		}
		for name, x := range all {
			if x.Nbytes() > len(b) {
				t.Fatalf("%s has %d bytes, of %d", name, x.Nbytes(), len(b))
			}
			x.Close()
		}
	})
}
