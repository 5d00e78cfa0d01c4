package parquet_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	writer "github.com/parquet-go/parquet-go"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/parquet"
	"github.com/shoal-mp/shoal/data/row"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A sample has a column of each kind that there is.
type sample struct {
	Text  string           `parquet:"text"`
	N     int64            `parquet:"n"`
	Small uint8            `parquet:"small"`
	X     float32          `parquet:"x"`
	OK    bool             `parquet:"ok"`
	Raw   []byte           `parquet:"raw"`
	Maybe *float64         `parquet:"maybe,optional"`
	IDs   []int32          `parquet:"ids,list"`
	Words []string         `parquet:"words,list"`
	Bare  []float64        `parquet:"bare"`
	Mat   [][]float32      `parquet:"mat,list"`
	Deep  deep             `parquet:"deep"`
	Many  []deep           `parquet:"many,list"`
	Named map[string]int64 `parquet:"named"`
}

type deep struct {
	A int64    `parquet:"a"`
	B []string `parquet:"b,list"`
}

// of is sample i: lists of every length, also none.
func of(i int) sample {
	s := sample{
		Text: fmt.Sprint("text ", i), N: int64(-i), Small: uint8(255 - i%10), X: float32(i) / 4, OK: i%2 == 1,
		Raw:  []byte{byte(i), 0},
		Deep: deep{int64(i), slices.Repeat([]string{"b"}, i%3)},
	}
	for k := range i % 4 {
		s.IDs = append(s.IDs, int32(i+k))
		s.Words = append(s.Words, strings.Repeat("w", k))
		s.Many = append(s.Many, deep{int64(k), slices.Repeat([]string{"m"}, k)})
		s.Bare = append(s.Bare, float64(k)+0.5)
	}
	if i%2 == 0 {
		v := float64(i)
		s.Maybe = &v
		s.Named = map[string]int64{"one": int64(i)}
	}
	return s
}

// written is a file of n samples, in groups of so many rows.
func written(t testing.TB, n, group int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "train.parquet")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := writer.NewGenericWriter[sample](f, writer.MaxRowsPerRowGroup(int64(group)),
		writer.PageBufferSize(1<<10), writer.Compression(&writer.Zstd))
	for i := range n {
		if _, err := w.Write([]sample{of(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// shown is a value with the types of its parts.
func shown(v any) string {
	switch v := v.(type) {
	case *tensor.Tensor:
		return fmt.Sprintf("%v%v", v.DType(), tensor.Data[float64](v.To(tensor.Float64).Clone()))
	case map[string]any:
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, name+":"+shown(v[name]))
		}
		return "{" + strings.Join(parts, " ") + "}"
	case []any:
		var parts []string
		for _, item := range v {
			parts = append(parts, shown(item))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return fmt.Sprintf("%T(%v)", v, v)
}

// numbers are shown as a tensor.
func numbers[T int32 | float32 | float64](dtype string, list []T) string {
	return dtype + fmt.Sprint(list)
}

// want is what a sample should become.
func want(s sample) string {
	strs := func(list []string) string {
		var parts []string
		for _, w := range list {
			parts = append(parts, shown(w))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	var many []string
	for _, d := range s.Many {
		many = append(many, fmt.Sprintf("{a:int64(%d) b:%s}", d.A, strs(d.B)))
	}
	maybe, named := "<nil>(<nil>)", "{}"
	if s.Maybe != nil {
		maybe = shown(*s.Maybe)
	}
	for k, v := range s.Named {
		named = fmt.Sprintf("{%s:int64(%d)}", k, v)
	}
	bareText := numbers("float64", s.Bare)
	return fmt.Sprintf("{bare:%s deep:{a:int64(%d) b:%s} ids:%s many:[%s] mat:[] maybe:%s n:int64(%d) named:%s "+
		"ok:bool(%v) raw:[]uint8(%v) small:int64(%d) text:%s words:%s x:float64(%v)}",
		bareText, s.Deep.A, strs(s.Deep.B), numbers("int64", s.IDs), strings.Join(many, " "), maybe, s.N,
		named, s.OK, s.Raw, s.Small, shown(s.Text), strs(s.Words), s.X)
}

func TestOpen_HasTheRowsOfFiles(t *testing.T) {
	s, err := parquet.Open(parquet.Options{Cache: 1}, written(t, 700, 300), written(t, 5, 5))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Len() != 705 {
		t.Fatalf("%d rows", s.Len())
	}
	for _, i := range []int{0, 1, 2, 3, 699, 300, 299, 255, 256, 257, 555, 556, 700, 704} {
		v, err := data.Value(t.Context(), s, i)
		if got, want := shown(v), want(of(i%700)); err != nil || got != want {
			t.Fatalf("row %d: %v\n     %s\nwant %s", i, err, got, want)
		}
	}
	for _, i := range []int{-1, 705} {
		if _, err := data.Value(t.Context(), s, i); err == nil {
			t.Errorf("row %d was there", i)
		}
	}
}

func TestOpen_ColumnsAreThoseThatAreWanted(t *testing.T) {
	columns := []row.Column{{Name: "n"}, {Name: "ids", DType: new(tensor.Float32)}, {Name: "x"}}
	s, err := parquet.Open(parquet.Options{Columns: columns}, written(t, 10, 4))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	v, err := data.Value(t.Context(), s, 7)
	if want := "{ids:float32[7 8 9] n:int64(-7) x:float64(1.75)}"; err != nil || shown(v) != want {
		t.Errorf("%s, %v: want %s", shown(v), err, want)
	}
	sample, err := s.Get(t.Context(), 7)
	if err != nil || len(sample) != 3 || sample[0].DType() != tensor.Int64 || sample[1].Numel() != 3 ||
		sample[2].DType() != tensor.Float64 {
		t.Errorf("%v, %v", sample, err)
	}
	if _, err := parquet.Open(parquet.Options{Columns: []row.Column{{Name: "lable"}}},
		written(t, 1, 1)); !errors.Is(err, row.ErrColumn) ||
		!strings.Contains(err.Error(), `"text", `) && !strings.Contains(err.Error(), `"text"`) {
		t.Errorf("a column that is not there: %v", err)
	}
	text, err := parquet.Open(parquet.Options{}, written(t, 3, 3))
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	_, err = text.Get(t.Context(), 2)
	if at, ok := errors.AsType[*row.Error](err); !ok || at.Number != 2 || !errors.Is(err, row.ErrKind) {
		t.Errorf("a text as a tensor: %v", err)
	}
}

func TestOpen_BadFilesAreErrors(t *testing.T) {
	whole, err := os.ReadFile(written(t, 100, 50))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bad.parquet")
	for name, b := range map[string][]byte{
		"empty": nil, "no magic": []byte("hello, this is a text"), "cut": whole[:len(whole)/2],
		"only magic":        []byte("PAR1PAR1"),
		"a footer of 4 GiB": append(bytes.Clone(whole[:len(whole)-8]), "\xff\xff\xff\xffPAR1"...),
	} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := parquet.Open(parquet.Options{}, path); !errors.Is(err, parquet.ErrFormat) ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := parquet.Open(parquet.Options{}, "nowhere.parquet"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := parquet.Open(parquet.Options{MaxPage: 10}, written(t, 100, 50)); !errors.Is(err, parquet.ErrSize) {
		t.Errorf("a large column: %v", err)
	}
	type times struct {
		D int64 `parquet:"d,decimal(2:12)"`
	}
	decimals := filepath.Join(t.TempDir(), "decimals.parquet")
	if err := writer.WriteFile(decimals, []times{{1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := parquet.Open(parquet.Options{}, decimals); !errors.Is(err, parquet.ErrKind) ||
		!strings.Contains(err.Error(), `"d"`) {
		t.Errorf("decimals: %v", err)
	}
	broken := bytes.Clone(whole)
	copy(broken[4:], bytes.Repeat([]byte{0xff}, 200))
	if err := os.WriteFile(path, broken, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := parquet.Open(parquet.Options{}, path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = data.Value(t.Context(), s, 0)
	if at, ok := errors.AsType[*row.Error](err); !ok || at.Number != 0 || at.Path != path ||
		!errors.Is(err, parquet.ErrFormat) {
		t.Errorf("a damaged page: %v", err)
	}
}

// allocated is how many bytes f makes room for, used or not.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// varint is how Thrift's compact form has a number.
func varint(n int64) []byte { return binary.AppendVarint(nil, n) }

// TestOpen_SizesThatLieMakeNoRoom writes sizes of gigabytes into a small file: into the headers of
// its pages, and into its footer.
func TestOpen_SizesThatLieMakeNoRoom(t *testing.T) {
	type row struct {
		N int64 `parquet:"n"`
	}
	path := filepath.Join(t.TempDir(), "n.parquet")
	if err := writer.WriteFile(path, []row{{1}, {2}, {3}}, writer.Compression(&writer.Uncompressed)); err != nil {
		t.Fatal(err)
	}
	whole := testutil.Value(os.ReadFile(path))(t)
	s := testutil.Value(parquet.Open(parquet.Options{}, path))(t)
	if v, err := data.Value(t.Context(), s, 2); err != nil || v.(map[string]any)["n"] != int64(3) {
		t.Fatal(v, err)
	}
	s.Close()
	// A header is type, size, packed size, then a struct: 15 06 15 <size> 15 <size>.
	header := append(append([]byte{0x15, 6, 0x15}, varint(24)...), append([]byte{0x15}, varint(24)...)...)
	at := bytes.Index(whole, header)
	if at < 0 {
		t.Fatalf("no header of a page of 24 bytes in %x", whole)
	}
	lie := func(b []byte) []byte { return slices.Concat(whole[:at], b, whole[at+len(b):]) }
	huge := varint(math.MaxInt32)
	for name, c := range map[string]struct {
		file []byte
		want error
	}{
		"a page of 2 GiB": {lie(slices.Concat([]byte{0x15, 6, 0x15}, huge, []byte{0x15},
			varint(24))), parquet.ErrSize},
		"a packed page of 2 GiB": {lie(slices.Concat([]byte{0x15, 6, 0x15}, varint(24), []byte{0x15},
			huge)), parquet.ErrFormat},
		"a header with a long string": {lie(slices.Concat([]byte{0x18}, huge)), parquet.ErrFormat},
		"a page that is negative": {lie(slices.Concat([]byte{0x15, 6, 0x15}, varint(-24), []byte{0x15},
			varint(24))), parquet.ErrFormat},
	} {
		if err := os.WriteFile(path, c.file, 0o600); err != nil {
			t.Fatal(err)
		}
		var err error
		if n := allocated(func() {
			s, opened := parquet.Open(parquet.Options{}, path)
			if err = opened; err == nil {
				_, err = data.Value(t.Context(), s, 0)
				s.Close()
			}
		}); n > 16<<20 || !errors.Is(err, c.want) {
			t.Errorf("%s: %v, %d bytes", name, err, n)
		}
	}
	for name, list := range map[string][]byte{
		"a list of 2 GiB":   append([]byte{0x29, 0xfc}, binary.AppendUvarint(nil, math.MaxInt32)...),
		"a string of 2 GiB": append([]byte{0x68}, binary.AppendUvarint(nil, math.MaxInt32)...),
	} {
		b := binary.LittleEndian.AppendUint32(append([]byte("PAR1"), list...), uint32(len(list)))
		if err := os.WriteFile(path, append(b, "PAR1"...), 0o600); err != nil {
			t.Fatal(err)
		}
		var err error
		if n := allocated(func() { _, err = parquet.Open(parquet.Options{}, path) }); n > 16<<20 ||
			!errors.Is(err, parquet.ErrFormat) {
			t.Errorf("%s in the footer: %v, %d bytes", name, err, n)
		}
	}
}

func ExampleOpen() {
	dir, _ := os.MkdirTemp("", "parquet")
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "train.parquet")
	type line struct {
		Text string  `parquet:"text"`
		IDs  []int64 `parquet:"ids,list"`
	}
	writer.WriteFile(path, []line{{"a", []int64{1}}, {"b", []int64{2, 3}}})

	train, err := parquet.Open(parquet.Options{}, path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer train.Close()
	v, err := data.Value(context.Background(), train, 1)
	sample := v.(map[string]any)
	fmt.Println(train.Len(), sample["text"], tensor.Data[int64](sample["ids"].(*tensor.Tensor)), err)
	// Output: 2 b [2 3] <nil>
}

// FuzzOpen wants an error or rows of any bytes.
func FuzzOpen(f *testing.F) {
	whole, err := os.ReadFile(written(f, 20, 7))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte("PAR1PAR1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "x.parquet")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		const most = 1 << 20
		if n := allocated(func() {
			s, err := parquet.Open(parquet.Options{MaxPage: most}, path)
			if err != nil {
				return
			}
			defer s.Close()
			for i := range min(s.Len(), 50) {
				data.Value(t.Context(), s, i)
			}
		}); n > 256*most+512*uint64(len(b)) { // 50 rows may each read all columns
			t.Errorf("%d bytes for a file of %d", n, len(b))
		}
	})
}
