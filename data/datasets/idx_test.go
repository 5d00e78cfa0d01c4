package datasets_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/tensor"
)

// idx returns an IDX file of the given type, dimensions and values.
func idx(kind byte, dims []uint32, values any) []byte {
	b := []byte{0, 0, kind, byte(len(dims))}
	for _, d := range dims {
		b = binary.BigEndian.AppendUint32(b, d)
	}
	b, err := binary.Append(b, binary.BigEndian, values)
	if err != nil {
		panic(err)
	}
	return b
}

func zip(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

func write(t testing.TB, path string, b []byte) string {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOpenIDX_ReadsEachType(t *testing.T) {
	for name, c := range map[string]struct {
		file []byte
		want *tensor.Tensor
	}{
		"uint8": {idx(0x08, []uint32{2, 2}, []uint8{0, 1, 254, 255}),
			tensor.FromSlice([]uint8{0, 1, 254, 255}, 2, 2)},
		"int8":    {idx(0x09, []uint32{3}, []int8{-128, 0, 127}), tensor.FromSlice([]int8{-128, 0, 127}, 3)},
		"int16":   {idx(0x0B, []uint32{1, 2}, []int16{-2, 300}), tensor.FromSlice([]int16{-2, 300}, 1, 2)},
		"int32":   {idx(0x0C, []uint32{2}, []int32{-70000, 70000}), tensor.FromSlice([]int32{-70000, 70000}, 2)},
		"float32": {idx(0x0D, []uint32{2}, []float32{-1.5, 2.25}), tensor.FromSlice([]float32{-1.5, 2.25}, 2)},
		"float64": {idx(0x0E, []uint32{1}, []float64{1e300}), tensor.FromSlice([]float64{1e300}, 1)},
		"none":    {idx(0x08, []uint32{0, 28, 28}, []uint8{}), tensor.FromSlice([]uint8{}, 0, 28, 28)},
		"scalar":  {idx(0x0C, nil, []int32{7}), tensor.FromSlice([]int32{7})},
	} {
		for form, file := range map[string][]byte{"plain": c.file, "gzip": zip(c.file)} {
			got, err := datasets.OpenIDX(write(t, filepath.Join(t.TempDir(), "set"), file))
			if err != nil {
				t.Errorf("%s, %s: %v", name, form, err)
				continue
			}
			if got.DType() != c.want.DType() || !slices.Equal(got.Shape(), c.want.Shape()) ||
				!tensor.Equal(got, c.want) {
				t.Errorf("%s, %s: %v, want %v", name, form, got, c.want)
			}
		}
	}
}

func TestOpenIDX_NamesABadFileWithItsOffset(t *testing.T) {
	good := idx(0x08, []uint32{2, 2}, []uint8{1, 2, 3, 4})
	huge := []uint32{1 << 31, 1 << 31, 1 << 31}
	for name, c := range map[string]struct {
		file   []byte
		want   error
		offset int64
	}{
		"empty":                {nil, data.ErrTruncated, 0},
		"half a magic number":  {good[:3], data.ErrTruncated, 3},
		"half a dimension":     {good[:10], data.ErrTruncated, 10},
		"wrong magic number":   {[]byte("PNG, or so"), datasets.ErrMagic, 0},
		"unknown type":         {idx(0x0A, []uint32{1}, []uint8{1}), datasets.ErrMagic, 0},
		"fewer than promised":  {good[:14], data.ErrTruncated, 14},
		"more than promised":   {append(slices.Clone(good), 5), data.ErrTrailing, 16},
		"impossible":           {idx(0x0E, []uint32{1 << 31}, []uint8{1}), data.ErrTruncated, 8},
		"overflow":             {idx(0x0E, huge, []uint8{1}), data.ErrTruncated, 16},
		"overflow, but none":   {idx(0x0E, append(slices.Clone(huge), 0), []uint8{}), data.ErrTruncated, 20},
		"zipped, truncated":    {zip(good)[:len(zip(good))-10], data.ErrTruncated, -1},
		"zipped, too few":      {zip(good[:14]), data.ErrTruncated, 14},
		"zipped, too many":     {zip(append(slices.Clone(good), 5)), data.ErrTrailing, 16},
		"zipped, impossible":   {zip(idx(0x08, []uint32{1 << 30}, []uint8{1})), data.ErrTruncated, 8},
		"zipped, no header":    {[]byte("\x1f\x8b\x08"), data.ErrTruncated, 0},
		"zipped, bad checksum": {func() []byte { z := zip(good); z[len(z)-6] ^= 1; return z }(), gzip.ErrChecksum, 16},
	} {
		path := write(t, filepath.Join(t.TempDir(), "set"), c.file)
		_, err := datasets.OpenIDX(path)
		fe, ok := errors.AsType[*encoding.FileError](err)
		switch {
		case !errors.Is(err, c.want) || !ok:
			t.Errorf("%s: %v, want a FileError of %v", name, err, c.want)
		case fe.Path != path || c.offset >= 0 && fe.Offset != c.offset:
			t.Errorf("%s: at byte %d of %s, want byte %d", name, fe.Offset, fe.Path, c.offset)
		case !strings.Contains(err.Error(), path):
			t.Errorf("%s: %q does not name the file", name, err)
		}
	}
}

func TestOpenIDX_AMissingFileDoesNotExist(t *testing.T) {
	if _, err := datasets.OpenIDX(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want fs.ErrNotExist", err)
	}
}

func FuzzIDX(f *testing.F) {
	good := idx(0x0B, []uint32{2, 2}, []int16{1, 2, 3, 4})
	for _, seed := range [][]byte{good, zip(good), good[:9],
		idx(0x08, []uint32{1 << 31, 1 << 31}, []uint8{1}), idx(0x0D, nil, []float32{1})} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		got, err := datasets.ReadIDX(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			return
		}
		if n := got.Numel() * got.DType().Size(); n > 1032*len(file) {
			t.Errorf("%d bytes out of %d", n, len(file))
		}
	})
}

// 12 MB that say that they become 12 GiB are refused before there is memory for those.
func TestOpenIDX_AGzippedFileHasALimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.gz")
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.NoCompression)
	z.Write([]byte{0, 0, 8, 2, 0, 0, 0x30, 0, 0, 0x10, 0, 0}) // 12,288 times 1 MiB
	z.Write(make([]byte, 12<<20))
	z.Close()
	put(t, path, b.Bytes())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := datasets.OpenIDX(path)
	runtime.ReadMemStats(&after)
	var file *encoding.FileError
	if !errors.Is(err, datasets.ErrLimit) || !errors.As(err, &file) || !strings.Contains(err.Error(), "gunzip") ||
		strings.Contains(err.Error(), "download the file again") {
		t.Errorf("%v", err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
		t.Errorf("%d bytes were allocated for it", n)
	}
}
