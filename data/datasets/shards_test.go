package datasets_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/data/image"
	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
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

// An empty file, and one that was cut in a header or in a file, are not whole.
func TestRegression_S4_4_AShardThatIsCutIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.tar")
	whole := archive(t, "1.txt", "one", "2.txt", "two")
	for _, n := range []int{0, 100, 514, 1024 + 100} {
		put(t, path, whole[:n])
		var last error
		for _, err := range datasets.Records(path) {
			last = err
		}
		testutil.ErrorIs(t, last, data.ErrTruncated)
	}
}

// keysOf returns the keys of a shard's records.
func keysOf(t *testing.T, path string) (keys []string) {
	t.Helper()
	for r, err := range datasets.Records(path) {
		testutil.NoError(t, err)
		keys = append(keys, r.Key)
	}
	return keys
}

// An archive ends with two blocks of zeros. Python's tarfile and WebDataset read others too.
func TestRecords_NeedNoEndBlocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.tar")
	whole := archive(t, "1.txt", "one", "2.txt", "two")
	for n, want := range map[int]int{515: 1, 1024: 1, 1024 + 515: 2, 2048: 2, 2048 + 512: 2, len(whole): 2} {
		put(t, path, whole[:n])
		if got := keysOf(t, path); len(got) != want {
			t.Errorf("the first %d bytes: %q, want %d records", n, got, want)
		}
	}
}

func TestRecords_AreUnpacked(t *testing.T) {
	whole := archive(t, "1.txt", "one", "2.txt", strings.Repeat("two", 1e5))
	for kind, pack := range map[string]func(io.Writer) io.WriteCloser{
		"gz": func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"zst": func(w io.Writer) io.WriteCloser {
			return testutil.Must(zstd.NewWriter(w))
		},
	} {
		var b bytes.Buffer
		w := pack(&b)
		testutil.Must(w.Write(whole))
		testutil.NoError(t, w.Close())
		for _, name := range []string{"a.tar." + kind, "a.tar"} { // the name does not matter
			path := filepath.Join(t.TempDir(), name)
			put(t, path, b.Bytes())
			if got := keysOf(t, path); !slices.Equal(got, []string{"1", "2"}) {
				t.Errorf("%s of %s: %q", name, kind, got)
			}
			put(t, path, b.Bytes()[:b.Len()/2])
			var last error
			for _, err := range datasets.Records(path) {
				last = err
			}
			if file := (*encoding.FileError)(nil); !errors.As(last, &file) {
				t.Errorf("half of %s: %v, want a FileError", kind, last)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "a.tar.bz2") // Go has no writer of bzip2
	put(t, path, testutil.Must(base64.StdEncoding.DecodeString(bzipped)))
	if got := keysOf(t, path); !slices.Equal(got, []string{"1"}) {
		t.Errorf("bzip2: %q", got)
	}
}

// linked is an archive with links to files before and after them, and to links.
func linked(t *testing.T) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []tar.Header{
		{Name: "d/0.txt", Typeflag: tar.TypeReg, Size: 4},
		{Name: "1.txt", Typeflag: tar.TypeLink, Linkname: "d/0.txt"},
		{Name: "d/2.txt", Typeflag: tar.TypeSymlink, Linkname: "0.txt"},
		{Name: "e/3.txt", Typeflag: tar.TypeSymlink, Linkname: "../last/5.txt"},
		{Name: "e/4.txt", Typeflag: tar.TypeLink, Linkname: "./d/2.txt"},
		{Name: "last/5.txt", Typeflag: tar.TypeReg, Size: 4},
		{Name: "6.txt", Typeflag: tar.TypeSymlink, Linkname: "6.txt"},
		{Name: "7.txt", Typeflag: tar.TypeSymlink, Linkname: strings.Repeat("n", 150)},
		{Name: "8.txt", Typeflag: tar.TypeSymlink, Linkname: "e/" + strings.Repeat("m", 150) + "/../3.txt"},
	} {
		h.Mode = 0o644
		testutil.NoError(t, w.WriteHeader(&h))
		if h.Size > 0 {
			testutil.Must(w.Write([]byte(h.Name[:4])))
		}
	}
	testutil.NoError(t, w.Close())
	return b.Bytes()
}

func TestRecords_FollowLinksWithinTheArchive(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	testutil.Must(z.Write(linked(t)))
	testutil.NoError(t, z.Close())
	for name, b := range map[string][]byte{"a.tar": linked(t), "a.tar.gz": packed.Bytes()} {
		path := filepath.Join(t.TempDir(), name)
		put(t, path, b)
		var got []string
		for r, err := range datasets.Records(path) {
			testutil.NoError(t, err)
			got = append(got, fmt.Sprintf("%s=%s", r.Key, r.Files["txt"]))
		}
		want := []string{"d/0=d/0.", "1=d/0.", "d/2=d/0.", "e/3=last", "e/4=d/0.", "last/5=last", "8=last"}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A lettered Decoder makes the number of a record of its name.
type lettered struct{}

func (lettered) Decode(_ context.Context, r datasets.Record) (data.Sample, error) {
	n, err := strconv.Atoi(r.Key)
	return data.Sample{tensor.Scalar(tensor.Int64, float64(n))}, err
}

// numberedShards are shards of so many records each, which have the numbers from 0 on.
func numberedShards(t *testing.T, sizes ...int) (paths []string) {
	dir, n := t.TempDir(), 0
	for i, size := range sizes {
		var entries []string
		for range size {
			entries = append(entries, fmt.Sprintf("%d.txt", n), "x")
			n++
		}
		paths = append(paths, filepath.Join(dir, fmt.Sprintf("%02d.tar", i)))
		put(t, paths[i], archive(t, entries...))
	}
	return paths
}

// numbersOf returns the numbers of a part.
func numbersOf(t *testing.T, s data.Stream, info data.Info, p data.Part) (got []int) {
	t.Helper()
	for s, err := range s.Samples(data.WithSample(t.Context(), info, 0), p) {
		testutil.NoError(t, err)
		got = append(got, int(s[0].Item()))
	}
	return got
}

func TestShardOptions_ShuffleIsByTheSeedAndTheEpoch(t *testing.T) {
	sizes := []int{30, 30, 30, 30, 13}
	want := make([]int, 133)
	for i := range want {
		want[i] = i
	}
	for _, buffer := range []int{1, 20, 1000} {
		set := datasets.NewShardsWith(lettered{}, datasets.ShardOptions{Shuffle: buffer},
			numberedShards(t, sizes...)...)
		var orders [][]int
		for _, info := range []data.Info{{Seed: 1}, {Seed: 1, Epoch: 1}, {Seed: 2}, {Seed: 1}} {
			var all []int
			for part := range 3 {
				all = append(all, numbersOf(t, set, info, data.Part{Index: part, Count: 3})...)
			}
			orders = append(orders, all)
			if sorted := slices.Sorted(slices.Values(all)); !slices.Equal(sorted, want) {
				t.Fatalf("buffer %d: %v is not each sample once", buffer, sorted)
			}
		}
		if !slices.Equal(orders[0], orders[3]) {
			t.Errorf("buffer %d: one seed and epoch make two orders", buffer)
		}
		for i, o := range orders[:3] {
			if slices.Equal(o, want) || i > 0 && slices.Equal(o, orders[0]) {
				t.Errorf("buffer %d: order %d is not another one: %v", buffer, i, o)
			}
		}
		if inOrder := 0; buffer > 1 {
			for k, n := range orders[0][1:] {
				if n == orders[0][k]+1 {
					inOrder++
				}
			}
			if inOrder > 30 {
				t.Errorf("buffer %d: %d samples follow the one before: %v", buffer, inOrder, orders[0])
			}
		}
	}
	for _, err := range datasets.NewShardsWith(lettered{}, datasets.ShardOptions{Shuffle: -1}, "x").Samples(t.Context(),
		data.Part{Count: 1}) {
		testutil.ErrorContains(t, err, "negative")
	}
}

func TestShardOptions_EqualGivesPartsEqualNumbers(t *testing.T) {
	paths := numberedShards(t, 10, 1, 0, 25, 7)
	for _, shuffle := range []int{0, 8} {
		set := datasets.NewShardsWith(lettered{}, datasets.ShardOptions{Equal: true, Shuffle: shuffle}, paths...)
		for _, parts := range []int{1, 2, 4, 5, 43, 44} {
			seen := map[int]bool{}
			for part := range parts {
				got := numbersOf(t, set, data.Info{Seed: 3}, data.Part{Index: part, Count: parts})
				if len(got) != 43/parts {
					t.Errorf("part %d of %d has %d samples, want %d", part, parts, len(got), 43/parts)
				}
				for _, n := range got {
					if seen[n] {
						t.Errorf("sample %d is in two parts of %d", n, parts)
					}
					seen[n] = true
				}
			}
		}
	}
}

// A loop over a part that spans several shards may end early.
func TestShards_EqualPartMayEndEarly(t *testing.T) {
	paths := numberedShards(t, 2, 2, 2)
	set := datasets.NewShardsWith(lettered{}, datasets.ShardOptions{Equal: true}, paths...)
	for stop := range 6 {
		n := 0
		for _, err := range set.Samples(t.Context(), data.Part{Count: 1}) {
			testutil.NoError(t, err)
			if n++; n > stop {
				break
			}
		}
		if n != stop+1 {
			t.Errorf("%d samples, want %d", n, stop+1)
		}
	}
}

// A file beside the samples that describes them is no sample, and a class without its image is an
// error.
func TestImageDecoder_KnowsWhatIsNoSample(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.tar")
	jpg := string(encoded(t, "jpg", drawing(1, 8, 8)))
	put(t, path, archive(t, "dataset_info.json", "{}", "0.jpg", jpg, "0.cls", "5", "notes.txt", "x"))
	for _, equal := range []bool{false, true} {
		set := datasets.NewShardsWith(datasets.ImageDecoder{}, datasets.ShardOptions{Equal: equal}, path)
		n := 0
		for s, err := range set.Samples(t.Context(), data.Part{Count: 1}) {
			testutil.NoError(t, err)
			if n++; s[1].Item() != 5 {
				t.Errorf("class %v", s[1].Item())
			}
		}
		if n != 1 {
			t.Errorf("%d samples", n)
		}
	}
	put(t, path, archive(t, "0.jpg", jpg, "0.cls", "5", "1.cls", "6", "2.jpg", jpg, "2.cls", "7"))
	var got []string
	for s, err := range datasets.NewShards(datasets.ImageDecoder{}, path).Samples(t.Context(), data.Part{Count: 1}) {
		if err != nil {
			testutil.ErrorIs(t, err, data.ErrShape)
			testutil.ErrorContains(t, err, path, "sample 1", ".jpg")
			got = append(got, "error")
		} else {
			got = append(got, fmt.Sprint(s[1].Item()))
		}
	}
	if !slices.Equal(got, []string{"5", "error", "7"}) {
		t.Errorf("%q", got)
	}
}

func TestGlob(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a-2.tar", "a-1.tar", "b.tar", "{x}.tar", "[y].tar"} {
		put(t, filepath.Join(dir, name), nil)
	}
	for pattern, want := range map[string]string{
		"a-{000..003}.tar":     "a-000.tar a-001.tar a-002.tar a-003.tar",
		"a-{9..11}.tar":        "a-9.tar a-10.tar a-11.tar",
		"a-{11..9}.tar":        "a-11.tar a-10.tar a-9.tar",
		"a-{0..10..5}.tar":     "a-0.tar a-5.tar a-10.tar",
		"a-{-01..01}.tar":      "a--01.tar a-000.tar a-001.tar",
		"{train,val}-{0..1}":   "train-0 train-1 val-0 val-1",
		"{a,b{1..2},}x":        "ax b1x b2x x",
		"{a..c}":               "a b c",
		"none-{x}.tar":         "none-{x}.tar",
		"open-{0..1.tar":       "open-{0..1.tar",
		"{x}.tar":              "{x}.tar",
		"[y].tar":              "[y].tar",
		"a-*.tar":              "a-1.tar a-2.tar",
		"{b,a-*}.tar":          "b.tar a-1.tar a-2.tar",
		"missing.tar":          "missing.tar",
		"{none..12}-{0..1}.gz": "{none..12}-0.gz {none..12}-1.gz",
	} {
		got, err := datasets.Glob(filepath.Join(dir, pattern))
		for i := range got {
			got[i] = strings.TrimPrefix(got[i], dir+"/")
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, %v, want %s", pattern, got, err, want)
		}
	}
	for _, pattern := range []string{"none-*.tar", "{a,none}-*.tar", "{0..99999999999}", "{1..2000}{1..2000}", "[a-"} {
		_, err := datasets.Glob(filepath.Join(dir, pattern))
		testutil.ErrorIs(t, err, datasets.ErrPattern)
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
		{Name: "3.jpg", Typeflag: tar.TypeFifo}, {Name: "4.jpg", Typeflag: tar.TypeChar},
		{Name: "5.d/", Typeflag: tar.TypeDir},
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

// bzipped is a tar file with 1.txt.
const bzipped = "QlpoOTFBWSZTWVdw7KcAAGh7gMmAAADAAW2AAAhiAZ5ACAggAFQ0gTATADQSSIGmmnqDEH15EEIOsEIQ9n0HnLNAhg" +
	"YfeIosI5ggmlLRQGMgkVzo99M+m+BEQHhdyRThQkFdw7Kc"

// TestImageDecoder_WritesToARow compares samples in a row of a batch with other samples. An
// image that does not fit the row comes in memory of its own.
func TestImageDecoder_WritesToARow(t *testing.T) {
	for _, steps := range []image.Pipeline{nil, {image.CenterCrop(8, 6)}, {image.CenterCrop(8, 6), image.ToTensor},
		{image.ToTensor, image.RandomErasing{P: 1}}, {image.CenterCrop(8, 6), image.RandomHorizontalFlip(1)}} {
		d := datasets.ImageDecoder{Steps: steps}
		first := datasets.Record{Files: map[string][]byte{"png": encoded(t, "png", drawing(1, 20, 24)), "cls": []byte("3")}}
		for _, other := range []datasets.Record{first,
			{Files: map[string][]byte{"png": encoded(t, "png", drawing(2, 20, 24)), "cls": []byte("4")}},
			{Files: map[string][]byte{"png": encoded(t, "png", drawing(2, 24, 20)), "cls": []byte("4")}}} {
			like, err := d.Decode(data.WithSample(t.Context(), data.Info{}, 1), first)
			if err != nil {
				t.Fatal(err)
			}
			want, err := d.Decode(data.WithSample(t.Context(), data.Info{}, 2), other)
			if err != nil {
				t.Fatal(err)
			}
			for _, dt := range []tensor.DType{like[0].DType(), tensor.Uint8, tensor.Float64} {
				into := data.Batch{tensor.New(dt, append([]int{3}, like[0].Shape()...)...), tensor.New(tensor.Int64, 3)}
				near := d
				near.Row = func() (data.Batch, int) { return into, 1 }
				got, err := near.Decode(data.WithSample(t.Context(), data.Info{}, 2), other)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(tensor.Bytes(got[0].Clone()), tensor.Bytes(want[0])) ||
					!slices.Equal(got[0].Shape(), want[0].Shape()) || got[1].Item() != want[1].Item() {
					t.Errorf("%v in a row of %v: got class %v, want %v with other pixels", steps, dt, got[1], want[1])
				}
				fits := dt == want[0].DType() && slices.Equal(want[0].Shape(), like[0].Shape())
				if inPlace := got[0].Storage() == into[0].Storage(); inPlace != fits {
					t.Errorf("%v: got a view of the row: %v, want %v", steps, inPlace, fits)
				}
				for _, k := range []int{0, 2} {
					if row := into[0].Select(0, k).Clone(); slices.Max(tensor.Bytes(row)) != 0 {
						t.Errorf("%v: row %d was changed", steps, k)
					}
				}
			}
		}
	}
}
