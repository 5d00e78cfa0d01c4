package datasets_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/data/image"
	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/tensor"
)

// archive is a tar file of names and contents, in turn.
func archive(t testing.TB, entries ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(entries); i += 2 {
		h := &tar.Header{Name: entries[i], Mode: 0o644, Size: int64(len(entries[i+1])), Typeflag: tar.TypeReg}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, entries[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRecords_AreFilesOfOneName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.tar")
	put(t, path, archive(t, "a/1.jpg", "x", "a/1.seg.png", "y", "a/1.CLS", "3", ".hidden", "no", "README",
		"no", "b/1.jpg", "z", "b/2.cls", "w"))
	var got []string
	for r, err := range datasets.Records(path) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %q", r.Key, r.Files))
	}
	want := []string{`a/1 map["cls":"3" "jpg":"x" "seg.png":"y"]`, `b/1 map["jpg":"z"]`, `b/2 map["cls":"w"]`}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for range datasets.Records(path) {
		break
	}
}

func TestRecords_HaveLongNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.tar")
	long := strings.Repeat("directory/", 30) + strings.Repeat("n", 120)
	for _, format := range []tar.Format{tar.FormatPAX, tar.FormatGNU, tar.FormatUSTAR} {
		name := long
		if format == tar.FormatUSTAR {
			name = long[200:]
			name = name[:len(name)-60]
		}
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, kind := range []string{".txt", ".cls"} {
			if err := w.WriteHeader(&tar.Header{Name: name + kind, Size: 2, Mode: 0o644, Format: format,
				Typeflag: tar.TypeReg}); err != nil {
				t.Fatal(err)
			}
			io.WriteString(w, kind[1:3])
		}
		w.WriteHeader(&tar.Header{Name: "a.link", Linkname: "b", Typeflag: tar.TypeSymlink})
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		put(t, path, b.Bytes())
		n := 0
		for r, err := range datasets.Records(path) {
			if n++; err != nil || r.Key != name || string(r.Files["txt"]) != "tx" || string(r.Files["cls"]) != "cl" {
				t.Errorf("%v: %v, %.20q… %q", format, err, r.Key, r.Files)
			}
		}
		if n != 1 {
			t.Errorf("%v: %d records", format, n)
		}
	}
}

func FuzzShard(f *testing.F) {
	f.Add(archive(f, "a/1.jpg", "x", "a/1.cls", "3"))
	f.Add(archive(f, strings.Repeat("long", 60)+".jpg", "x"))
	path := filepath.Join(f.TempDir(), "a.tar")
	f.Fuzz(func(t *testing.T, b []byte) {
		put(t, path, b)
		for _, err := range datasets.Records(path) {
			if file := (*encoding.FileError)(nil); err != nil && !errors.As(err, &file) {
				t.Errorf("%v is no FileError", err)
			}
		}
	})
}

func TestRecords_ADamagedShardIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.tar")
	good := archive(t, "1.jpg", string(make([]byte, 2000)), "2.jpg", "two")
	long := bytes.Clone(good)
	copy(long[124:], "77777777777") // the size of the first file
	sum := 0
	copy(long[148:], "        ")
	for _, v := range long[:512] {
		sum += int(v)
	}
	copy(long[148:], fmt.Sprintf("%06o\x00 ", sum))
	for what, b := range map[string][]byte{
		"a cut in a file":   good[:1000],
		"nothing":           nil,
		"a cut in a header": good[:2700],
		"a damaged header":  append([]byte{1, 2, 3}, good[3:]...),
		"a long file":       long,
		"twice":             archive(t, "1.jpg", "a", "1.jpg", "b"),
	} {
		put(t, path, b)
		var last error
		for _, err := range datasets.Records(path) {
			last = err
		}
		var file *encoding.FileError
		if !errors.As(last, &file) || file.Path != path || file.Offset > int64(len(b)) {
			t.Errorf("%s: %v, want a FileError", what, last)
		}
	}
	for _, err := range datasets.Records(filepath.Join(t.TempDir(), "none")) {
		if err == nil {
			t.Error("no file is no error")
		}
	}
}

// shardsOf writes 4 shards of 3 images each.
func shardsOf(t *testing.T) (paths []string) {
	dir := t.TempDir()
	for s := range 4 {
		var entries []string
		for i := range 3 {
			kind := []string{"jpg", "png"}[i%2]
			entries = append(entries, fmt.Sprintf("%d.%s", 3*s+i, kind),
				string(encoded(t, kind, drawing(i, 20, 24))), fmt.Sprintf("%d.cls", 3*s+i), fmt.Sprint(3*s+i, "\n"))
		}
		paths = append(paths, filepath.Join(dir, fmt.Sprintf("%d.tar", s)))
		put(t, paths[s], archive(t, entries...))
	}
	return paths
}

func TestNewShards_SharesShardsOut(t *testing.T) {
	set := datasets.NewShards(datasets.ImageDecoder{Steps: image.Pipeline{image.RandomResizedCrop{H: 8, W: 8},
		image.ToTensor}}, shardsOf(t)...)
	var want string
	for _, c := range []struct {
		kind    data.Kind
		workers int
	}{{data.Goroutines, 0}, {data.Goroutines, 3}, {data.Processes, 2}} {
		l := data.NewStreamLoader(set, data.Options{BatchSize: 2, Workers: c.workers, Kind: c.kind, Seed: 3,
			Parts: 4, Debug: true})
		var all []byte
		var classes []int64
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, tensor.Bytes(b[0])...)
			classes = append(classes, tensor.Data[int64](b[1])...)
		}
		l.Close()
		if want == "" {
			want = string(all)
		}
		if string(all) != want {
			t.Errorf("%d workers of kind %d make other pixels", c.workers, c.kind)
		}
		slices.Sort(classes)
		if !slices.Equal(classes, []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}) {
			t.Errorf("samples %v", classes)
		}
	}
	var ranks []int64
	for rank := range 2 {
		l := data.NewStreamLoader(set, data.Options{BatchSize: 2, Rank: rank, World: 2, Parts: 4})
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			ranks = append(ranks, tensor.Data[int64](b[1])...)
		}
		l.Close()
	}
	slices.Sort(ranks)
	if !slices.Equal(ranks, []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}) {
		t.Errorf("two ranks have samples %v", ranks)
	}
}

func TestImageDecoder_ARecordWithoutAnImageIsAnError(t *testing.T) {
	for _, files := range []map[string][]byte{
		{"cls": []byte("1")},
		{"jpg": encoded(t, "jpg", drawing(1, 8, 8))},
		{"jpg": encoded(t, "jpg", drawing(1, 8, 8)), "cls": []byte("one")},
		{"png": []byte("no"), "cls": []byte("1")},
	} {
		if _, err := (datasets.ImageDecoder{}).Decode(t.Context(), datasets.Record{Files: files}); err == nil {
			t.Errorf("%q is no error", files)
		}
	}
}

// An archive ends with blocks of zeros. An empty file, and one that was cut between two files, are
// not whole.
func TestRegression_S4_4_AShardWithoutItsEndIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.tar")
	whole := archive(t, "1.txt", "one", "2.txt", "two")
	for _, n := range []int{0, 1024, 2048} {
		put(t, path, whole[:n])
		var last error
		for _, err := range datasets.Records(path) {
			last = err
		}
		if !errors.Is(last, data.ErrTruncated) {
			t.Errorf("the first %d bytes: %v", n, last)
		}
	}
	put(t, path, whole[:2048+512]) // one block of zeros is an end as well
	for _, err := range datasets.Records(path) {
		if err != nil {
			t.Error(err)
		}
	}
}

// A key may become the path of a file that somebody writes.
func TestRecords_KeysLeadNowhereElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.tar")
	for _, name := range []string{"../x.jpg", "a/../../x.jpg", "a/..", "/etc/x.conf", `\x.jpg`, `a\..\x.jpg`,
		strings.Repeat("long/", 60) + "../x.jpg"} {
		put(t, path, archive(t, "a/1.jpg", "x", name, "y"))
		var err error
		n := 0
		for _, err = range datasets.Records(path) {
			if err == nil {
				n++
			}
		}
		var file *encoding.FileError
		if strings.HasSuffix(name, "/..") { // a file without a key: it belongs to no sample
			if err != nil || n != 1 {
				t.Errorf("%s: %v after %d records", name, err, n)
			}
			continue
		}
		if !errors.Is(err, datasets.ErrKey) || !errors.As(err, &file) || n != 0 {
			t.Errorf("%s: %v after %d records", name, err, n)
		}
	}
	// archive/tar writes no zero; a record of an extended header has a length.
	zero := archive(t, strings.Repeat("n", 120)+"_x.jpg", "y")
	put(t, path, bytes.ReplaceAll(zero, []byte("n_x.jpg"), []byte("n\x00x.jpg")))
	for _, err := range datasets.Records(path) {
		if !errors.Is(err, datasets.ErrKey) {
			t.Errorf("a zero: %v", err)
		}
	}
	// What is in no folder of its own, or looks like the way up, is good.
	put(t, path, archive(t, "./1.jpg", "x", "..a/2.jpg", "y", "a..b/3..jpg", "z"))
	n := 0
	for r, err := range datasets.Records(path) {
		if n++; err != nil {
			t.Errorf("%v: %v", r.Key, err)
		}
	}
	if n != 3 {
		t.Errorf("%d records", n)
	}
}

// A link to a file outside, a device or a FIFO is no file of a sample.
func TestRecords_PassesOverWhatIsNoFile(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []*tar.Header{
		{Name: "1.jpg", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"},
		{Name: "2.jpg", Typeflag: tar.TypeLink, Linkname: "../../etc/passwd"},
		{Name: "3.jpg", Typeflag: tar.TypeFifo}, {Name: "4.jpg", Typeflag: tar.TypeChar}, {Name: "5.d/", Typeflag: tar.TypeDir},
		{Name: "6.jpg", Typeflag: tar.TypeReg, Size: 1},
	} {
		h.Mode = 0o644
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	w.Write([]byte("x"))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a.tar")
	put(t, path, b.Bytes())
	var keys []string
	for r, err := range datasets.Records(path) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, r.Key)
	}
	if !slices.Equal(keys, []string{"6"}) {
		t.Errorf("%q", keys)
	}
}
