package pt_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
)

func good(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/plain-2.15.pt")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// refused wants a typed error, read or mapped.
func refused(t *testing.T, path string, want error) {
	t.Helper()
	for _, mmap := range []bool{false, true} {
		v, err := pt.Load(path, pt.Options{Mmap: mmap})
		var file *encoding.FileError
		if !errors.As(err, &file) || file.Path != path || !errors.Is(err, want) {
			t.Errorf("mmap %v: %T, %v, not a FileError that wraps %v", mmap, v, err, want)
		}
	}
}

func TestLoad_RefusesHostileArchives(t *testing.T) {
	only := func(which string, content string) func(string, []byte) []byte {
		return func(name string, b []byte) []byte {
			if name == which {
				return []byte(content)
			}
			return b
		}
	}
	without := func(which string) func(string, []byte) []byte {
		return func(name string, b []byte) []byte {
			if name == which {
				return nil
			}
			return b
		}
	}
	for name, c := range map[string]struct {
		change func(string, []byte) []byte
		want   error
	}{
		"no pickle":          {without("data.pkl"), pt.ErrFormat},
		"no version":         {without("version"), pt.ErrFormat},
		"version 11":         {only("version", "11\n"), pt.ErrFormat},
		"version of text":    {only("version", strings.Repeat("3", 100)), pt.ErrFormat},
		"byte order":         {only("byteorder", "middle"), pt.ErrFormat},
		"no storage":         {without("data/0"), pt.ErrFormat},
		"a short storage":    {only("data/0", "1234"), pt.ErrFormat},
		"a long storage":     {only("data/0", strings.Repeat("x", 100)), pt.ErrFormat},
		"no pickle in it":    {only("data.pkl", "\x80\x02"), pt.ErrFormat},
		"a script":           {only(".format_version", "x"), nil},
		"a pickle of opcode": {only("data.pkl", "\x80\x02cos\nsystem\n\xff."), pt.ErrFormat},
		"an id of one part":  {only("data.pkl", "\x80\x02X\x01\x00\x00\x00aQ."), pt.ErrFormat},
		"text in an id": {only("data.pkl",
			"\x80\x02(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuX\x01\x00\x00\x009tQ."), pt.ErrFormat},
		"an odd class": {only("data.pkl",
			"\x80\x02(X\x07\x00\x00\x00storagectorch\nQInt8Storage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x0ctQ."),
			pt.ErrUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			path := rewritten(t, good(t), c.change)
			if c.want == nil {
				load(t, path, pt.Options{})
				return
			}
			refused(t, path, c.want)
		})
	}
}

// tree is an archive with a pickle of ours and a storage of 48 bytes.
func tree(t testing.TB, v any) string {
	t.Helper()
	b, err := pickle.Marshal(v, 2)
	if err != nil {
		t.Fatal(err)
	}
	return rewritten(t, good(t), func(name string, old []byte) []byte {
		if name == "data.pkl" {
			return b
		}
		return old
	})
}

func TestLoad_RefusesHostileTensors(t *testing.T) {
	id := func(n any) *pickle.Persistent {
		return &pickle.Persistent{ID: value.Tuple{"storage", value.Named("torch.FloatStorage"), "0", "cpu", n}}
	}
	call := func(name string, args ...any) *pickle.Object {
		return &pickle.Object{Class: value.Named(name), Args: args}
	}
	hooks := &value.Dict{Ordered: true}
	tensor := func(storage, offset, size, stride any) *pickle.Object {
		return call("torch._utils._rebuild_tensor_v2", storage, offset, size, stride, false, hooks)
	}
	three := value.Tuple{3}
	one := value.Tuple{1}
	for name, c := range map[string]struct {
		tree any
		want error
	}{
		"good":            {tensor(id(12), 0, three, one), nil},
		"too long":        {tensor(id(12), 10, three, one), pt.ErrFormat},
		"negative offset": {tensor(id(12), -1, three, one), pt.ErrFormat},
		"huge offset":     {tensor(id(12), 1<<62, three, one), pt.ErrFormat},
		"huge size": {tensor(id(12), 0, value.Tuple{1 << 47, 1 << 47}, value.Tuple{1, 1}),
			pt.ErrFormat},
		"negative size":       {tensor(id(12), 0, value.Tuple{-3}, one), pt.ErrFormat},
		"negative stride":     {tensor(id(12), 3, three, value.Tuple{-1}), pt.ErrFormat},
		"a stride too few":    {tensor(id(12), 0, three, value.Tuple{}), pt.ErrFormat},
		"sizes that are text": {tensor(id(12), 0, "three", one), pt.ErrFormat},
		"a storage of text":   {tensor("0", 0, three, one), pt.ErrFormat},
		"a storage of two sizes": {value.Tuple{tensor(id(12), 0, three, one),
			tensor(id(11), 0, three, one)}, pt.ErrFormat},
		"more elements than memory": {tensor(id(1<<60), 0, three, one), pt.ErrFormat},
		"no arguments":              {call("torch._utils._rebuild_tensor_v2"), pt.ErrFormat},
		"a parameter of nothing":    {call("torch._utils._rebuild_parameter"), pt.ErrFormat},
		"a parameter of a record":   {call("torch._utils._rebuild_parameter", call("a.b"), true, hooks), pt.ErrFormat},
		"sparse":                    {call("torch._utils._rebuild_sparse_tensor", 1, 2), pt.ErrUnsupported},
		"quantized":                 {call("torch._utils._rebuild_qtensor", 1, 2), pt.ErrUnsupported},
		"conjugated": {call("torch._utils._rebuild_tensor_v2", id(12), 0, three, one, false,
			hooks, pickle.NewDict("conj", true)), pt.ErrUnsupported},
		"a subclass": {call("torch._tensor._rebuild_from_type_v2",
			value.Named("torch._utils._rebuild_tensor_v2"), value.Named("my.Tensor"), value.Tuple{}, nil),
			pt.ErrUnsupported},
		"a tensor with attributes": {call("torch._tensor._rebuild_from_type_v2",
			value.Named("torch._utils._rebuild_tensor_v2"), value.Named("torch.Tensor"),
			value.Tuple{id(12), 0, three, one, false, hooks}, nil), nil},
		"attributes without end": {call("torch._tensor._rebuild_from_type_v2",
			value.Named("torch._tensor._rebuild_from_type_v2"), value.Named("torch.Tensor"), value.Tuple{},
			nil), pt.ErrFormat},
		"what would run is a record": {call("os.system", "true"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			path := tree(t, c.tree)
			if c.want == nil {
				load(t, path, pt.Options{})
				return
			}
			refused(t, path, c.want)
		})
	}
}

// Zip files that are made to deceive.
func TestLoad_RefusesHostileZips(t *testing.T) {
	b := good(t)
	directory := bytes.Index(b, []byte("PK\x01\x02"))
	for name, change := range map[string]func(b []byte) []byte{
		"half":          func(b []byte) []byte { return b[:len(b)/2] },
		"no directory":  func(b []byte) []byte { return b[:directory] },
		"three bytes":   func(b []byte) []byte { return b[:3] },
		"empty":         func(b []byte) []byte { return nil },
		"a wrong bit":   func(b []byte) []byte { b[bytes.Index(b, []byte("_rebuild_tensor_v2"))]++; return b },
		"overlap":       func(b []byte) []byte { return overlapping(b) },
		"size too big":  func(b []byte) []byte { binary.LittleEndian.PutUint32(b[directory+20:], 1<<31); return b },
		"stored longer": func(b []byte) []byte { binary.LittleEndian.PutUint32(b[directory+24:], 1<<31); return b },
		"a bomb":        func(b []byte) []byte { return deflated(t) },
		"an odd method": func(b []byte) []byte { binary.LittleEndian.PutUint16(b[directory+10:], 9); return b },
		"text":          func(b []byte) []byte { return []byte("PK\x03\x04, said the file") },
		"a pickle":      func(b []byte) []byte { return []byte("\x80\x02K\x01.") },
	} {
		t.Run(name, func(t *testing.T) { refused(t, write(t, change(bytes.Clone(b))), pt.ErrFormat) })
	}
	for n := 0; n < len(b); n += 1 + n/40 { // whatever was lost of it
		if _, err := pt.Load(write(t, b[:n]), pt.Options{}); err == nil {
			t.Fatalf("%d of %d bytes are enough", n, len(b))
		}
	}
}

// overlapping lets the second entry of the directory be where the first is.
func overlapping(b []byte) []byte {
	first := bytes.Index(b, []byte("PK\x01\x02"))
	second := first + 4 + bytes.Index(b[first+4:], []byte("PK\x01\x02"))
	copy(b[second+42:second+46], b[first+42:first+46])
	return b
}

// deflated has a storage of zeros that is small in the file.
func deflated(t testing.TB) []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	p, err := pickle.Marshal(&pickle.Persistent{ID: value.Tuple{"storage", value.Named("torch.ByteStorage"),
		"0", "cpu", 1 << 24}}, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []struct {
		name    string
		method  uint16
		content []byte
	}{{"x/data.pkl", zip.Store, p}, {"x/version", zip.Store, []byte("3")},
		{"x/data/0", zip.Deflate, make([]byte, 1<<24)}} {
		f, err := w.CreateHeader(&zip.FileHeader{Name: e.name, Method: e.method})
		if err != nil {
			t.Fatal(err)
		}
		f.Write(e.content)
	}
	w.Close()
	return out.Bytes()
}

// FuzzLoad wants a value or a typed error of any file, and what is a value can be walked, and saved
// unless it has records.
func FuzzLoad(f *testing.F) {
	for _, name := range []string{"plain-1.13", "plain-2.15", "legacy-1.13", "legacy-2.15",
		"legacymodel-2.15", "opt-1.13"} {
		b, err := os.ReadFile("testdata/" + name + ".pt")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		path := write(t, b)
		v, err := pt.Load(path, pt.Options{Mmap: len(b)%2 == 0, MapLocation: pt.To("cpu")})
		var file *encoding.FileError
		if err != nil && !errors.As(err, &file) {
			t.Fatal(err)
		}
		if err != nil {
			return
		}
		if _, _, err := pt.StateDict(v); err != nil && !errors.Is(err, pt.ErrFormat) {
			t.Fatal(err)
		}
		again := path + "-again"
		if err := pt.Save(again, v); err == nil {
			load(t, again, pt.Options{})
		}
	})
}
