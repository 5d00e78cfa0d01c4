package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/shoal-mp/shoal/data"
)

var codecs = []compress.Compression{compress.Codecs.Snappy, compress.Codecs.Lz4Raw, compress.Codecs.Zstd,
	compress.Codecs.Gzip, compress.Codecs.Brotli}

// packedBy is text by a codec, which is long and random or long and all the same.
func packedBy(t testing.TB, codec compress.Compression, text []byte) []byte {
	t.Helper()
	c, err := compress.GetCodec(codec)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(c.Encode(make([]byte, c.CompressBound(int64(len(text)))), text))
}

func noise(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.IntN(256) >> r.IntN(8))
	}
	return b
}

func TestUnpacked_LengthsAreKnown(t *testing.T) {
	for _, codec := range codecs {
		for name, text := range map[string][]byte{"zeros": make([]byte, 1<<20), "noise": noise(300_000),
			"short": []byte("abcabcabcabcabcabcabcabc"), "one": {7}} {
			b, n := packedBy(t, codec, text), int64(len(text))
			look := func(b []byte, said int64) error { return checkUnpacked(unpacked[codec], b, said) }
			if err := look(b, n); err != nil {
				t.Errorf("%v, %s: %v", codec, name, err)
			}
			if err := look(b, n-1); !errors.Is(err, errUnpacked) {
				t.Errorf("%v, %s, one byte less: %v", codec, name, err)
			}
			if err := look(b, 1<<30); !errors.Is(err, ErrFormat) {
				t.Errorf("%v, %s, a gigabyte: %v", codec, name, err)
			}
			// the library sees theirs
			if err := look(b[:len(b)-1], n); codec != compress.Codecs.Snappy && codec != compress.Codecs.Brotli &&
				!errors.Is(err, ErrFormat) {
				t.Errorf("%v, %s, cut: %v", codec, name, err)
			}
		}
	}
	// A frame of Zstandard that does not say its length, as writers of streams make it.
	var stream bytes.Buffer
	w, err := zstd.NewWriter(&stream)
	if err != nil {
		t.Fatal(err)
	}
	for range 16 {
		w.Write(make([]byte, zstdBlock))
		w.Flush()
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for said, good := range map[int64]bool{16 * zstdBlock: true, 16*zstdBlock - 1: false} {
		if err := checkUnpacked(zstdLength, stream.Bytes(), said); (err == nil) != good {
			t.Errorf("%d: %v", said, err)
		}
	}
	if err := checkUnpacked(zstdLength, bytes.Repeat(stream.Bytes(), 2), 20*zstdBlock); !errors.Is(err, errUnpacked) {
		t.Error(err)
	}
}

// TestUnpacked_APageHasWhatItSays has a page say less than what comes out of it. Before it was
// looked at, there was room for all of that.
func TestUnpacked_APageHasWhatItSays(t *testing.T) {
	type row struct {
		N int64 `parquet:"n,plain"`
	}
	const rows, says = 2 << 20, 1_100_000
	for _, codec := range codecs {
		path := filepath.Join(t.TempDir(), "n.parquet")
		if err := parquet.WriteFile(path, make([]row, rows),
			parquet.Compression(parquet.LookupCompressionCodec(format.CompressionCodec(codec))),
			parquet.PageBufferSize(32<<20)); err != nil {
			t.Fatal(err)
		}
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		header := binary.AppendVarint([]byte{0x15}, rows*8)
		if at := bytes.Index(whole, header); at < 0 {
			t.Fatalf("%v: no page of %d bytes", codec, rows*8)
		}
		lie := bytes.Replace(whole, header, binary.AppendVarint([]byte{0x15}, says), 1)
		if len(lie) != len(whole) {
			t.Fatal("the header has another length")
		}
		for _, c := range []struct {
			file []byte
			want error
		}{{whole, nil}, {lie, errUnpacked}} {
			if err := os.WriteFile(path, c.file, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := Open(Options{}, path)
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err = data.Value(t.Context(), s, 0)
			runtime.ReadMemStats(&after)
			s.Close()
			room := after.TotalAlloc - before.TotalAlloc
			if !errors.Is(err, c.want) || c.want != nil && (room >= rows*8 || !errors.Is(err, ErrFormat)) {
				t.Errorf("%v: %v, with %d bytes", codec, err, room)
			}
		}
	}
}

// FuzzUnpacked wants the library to make no more room for what a page has packed than was found
// here, and to end.
func FuzzUnpacked(f *testing.F) {
	for i, codec := range codecs {
		for _, text := range [][]byte{[]byte("hello"), make([]byte, 1000), noise(1000)} {
			f.Add(uint8(i), packedBy(f, codec, text), uint32(len(text)))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte, said uint32) {
		codec := codecs[int(which)%len(codecs)]
		most := int64(said % (4 << 20))
		if len(b) == 0 || checkUnpacked(unpacked[codec], b, most) != nil {
			return
		}
		c, err := compress.GetCodec(codec)
		if err != nil {
			t.Fatal(err)
		}
		all, err := compress.Decode(c, make([]byte, most), b)
		if err == nil && int64(len(all)) > most {
			t.Errorf("%v: %d bytes came out where %d were found", codec, len(all), most)
		}
	})
}
