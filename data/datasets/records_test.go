package datasets_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/tensor"
)

func names(n int) []string {
	s := make([]string, n)
	for i := range s {
		s[i] = fmt.Sprintf("record %d", i*i)
	}
	if n > 3 {
		s[3] = ""
	}
	return s
}

func TestList_HasItsRecords(t *testing.T) {
	for _, n := range []int{0, 1, 5, 1000} {
		want := names(n)
		l := datasets.NewList(want)
		path := filepath.Join(t.TempDir(), "list")
		if err := l.Save(path); err != nil {
			t.Fatal(err)
		}
		opened, err := datasets.OpenList(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range []*datasets.List{l, opened} {
			var got []string
			for r, err := range recordsOf(l) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, string(r))
			}
			if l.Len() != n || !slices.Equal(got, want) {
				t.Errorf("%d records: %d, %q", n, l.Len(), got)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// recordsOf yields the records of a List.
func recordsOf(l *datasets.List) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for i := range l.Len() {
			if r, err := l.At(i); !yield(r, err) || err != nil {
				return
			}
		}
	}
}

func TestMap_FindsItsKeys(t *testing.T) {
	for _, n := range []int{0, 1, 2, 7, 1000} {
		want := map[string]string{}
		for i := range n {
			want[fmt.Sprint("key ", i)] = fmt.Sprint("value ", i*i)
		}
		m := datasets.NewMap(maps.All(want))
		path := filepath.Join(t.TempDir(), "map")
		if err := m.Save(path); err != nil {
			t.Fatal(err)
		}
		opened, err := datasets.OpenMap(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []*datasets.Map{m, opened} {
			for k, v := range want {
				if got, ok, err := m.Get(k); !ok || string(got) != v || err != nil {
					t.Errorf("%q: %q, %v, %v", k, got, ok, err)
				}
			}
			if got, ok, err := m.Get("nobody"); ok || err != nil {
				t.Errorf("a key that is not there: %q, %v", got, err)
			}
			all := map[string]string{}
			for e, err := range m.All() {
				if err != nil {
					t.Fatal(err)
				}
				all[e.Key] = string(e.Record)
			}
			if m.Len() != n || !maps.Equal(all, want) {
				t.Errorf("%d keys, want %d; All: %q", m.Len(), n, all)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	twice := datasets.NewMap(func(yield func(string, string) bool) { _ = yield("k", "1") && yield("k", "2") })
	if v, _, _ := twice.Get("k"); string(v) != "2" || twice.Len() != 1 {
		t.Errorf("a key that comes twice: %q of %d", v, twice.Len())
	}
}

// look is what a worker does with a List and a Map: it finds a record in them, and says where the
// memory is.
type look struct {
	List *datasets.List
	Map  *datasets.Map
}

type found struct {
	Record, Value string
	Shared        bool
}

var lookUp = pool.Register("test look", func(_ context.Context, l look) (found, error) {
	v, _, err := l.Map.Get("record 16")
	r, also := l.List.At(4)
	return found{string(r), string(v), l.List.Block.IsShared() && l.Map.Block.IsShared()}, errors.Join(err, also)
})

func TestList_AndMapGoToWorkersWithoutACopy(t *testing.T) {
	l := datasets.NewList(names(10))
	m := datasets.NewMap(func(yield func(string, string) bool) {
		for i, n := range names(10) {
			if !yield(n, fmt.Sprint(i)) {
				return
			}
		}
	})
	defer l.Close()
	defer m.Close()
	if err := errors.Join(l.Share(), m.Share()); err != nil {
		t.Fatal(err)
	}
	p, err := pool.New(t.Context(), pool.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	got, err := lookUp.Apply(t.Context(), p, look{l, m})
	if want := (found{"record 16", "4", true}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

func TestOpenList_DamagedRecordsAreAnError(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "map")
	m := datasets.NewMap(maps.All(map[string]string{"a": "1", "b": "22", "c": "333"}))
	if err := m.Save(path); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	index := int(binary.LittleEndian.Uint64(good[24:]))
	check := func(what string, b []byte, open func(string) error) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		err := open(path)
		var file *encoding.FileError
		if !errors.As(err, &file) || !errors.Is(err, datasets.ErrRecords) || file.Path != path {
			t.Errorf("%s: %v, want a FileError that wraps ErrRecords", what, err)
		}
	}
	openMap := func(p string) error { m, err := datasets.OpenMap(p); _ = m; return err }
	for i := range index {
		if i >= 36 && i < 40 {
			continue // means nothing
		}
		b := slices.Clone(good)
		b[i] ^= 4
		check(fmt.Sprint("byte ", i), b, openMap)
	}
	for n := range good {
		check(fmt.Sprint(n, " bytes"), good[:n], openMap)
	}
	check("more bytes", append(slices.Clone(good), 0), openMap)
	check("a map as a list", good, func(p string) error { _, err := datasets.OpenList(p); return err })
	if _, err := datasets.OpenList(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestList_DamagedLaterIsAnError has a writer, who should not be there, change memory
// that was checked.
func TestList_DamagedLaterIsAnError(t *testing.T) {
	l := datasets.NewList(names(5))
	m := datasets.NewMap(maps.All(map[string]string{"a": "1", "b": "22", "c": "333"}))
	if err := errors.Join(l.Share(), m.Share()); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	defer m.Close()
	const head, high = 40, 0x80
	bytes := tensor.Bytes(l.Block)
	for at := 8; at < 32; at++ { // the numbers of the header
		bytes[at] ^= high
		if r, err := l.At(0); !errors.Is(err, datasets.ErrRecords) || r != nil || l.Len() != 0 {
			t.Errorf("byte %d of a List is damaged: %q, %v, %d records", at, r, err, l.Len())
		}
		bytes[at] ^= high
	}
	bytes[head+8*2+7] ^= high // where record 2 ends
	for i := range 5 {
		if _, err := l.At(i); errors.Is(err, datasets.ErrRecords) != (i == 2 || i == 3) {
			t.Errorf("the end of record 2 is damaged: record %d: %v", i, err)
		}
	}
	var last error
	for _, err := range recordsOf(l) {
		last = err
	}
	if !errors.Is(last, datasets.ErrRecords) {
		t.Errorf("the last record is %v", last)
	}
	for _, i := range []int{-1, 5} {
		if _, err := l.At(i); !errors.Is(err, datasets.ErrRecords) {
			t.Errorf("record %d of 5: %v", i, err)
		}
	}

	bytes = tensor.Bytes(m.Block)
	good := slices.Clone(bytes)
	for at := range bytes {
		bytes[at] ^= high
		_, _, err := m.Get("b")
		for _, also := range m.All() {
			err = errors.Join(err, also)
		}
		if err != nil && !errors.Is(err, datasets.ErrRecords) || err == nil && at >= 8 && at < 32 {
			t.Errorf("byte %d of a Map is damaged: %v", at, err)
		}
		copy(bytes, good)
	}
	for at := head + 8*2*3; at < int(binary.LittleEndian.Uint64(bytes[24:])); at += 8 { // a table without an end
		binary.LittleEndian.PutUint64(bytes[at:], 1)
	}
	if _, ok, err := m.Get("none"); ok || err != nil {
		t.Errorf("a table without an end: %v, %v", ok, err)
	}
}

func TestList_InAFileThatIsCutIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list")
	if err := datasets.NewList(names(1000)).Save(path); err != nil {
		t.Fatal(err)
	}
	l, err := datasets.OpenList(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Truncate(path, 50); err != nil {
		t.Fatal(err)
	}
	if _, err := l.At(999); !errors.Is(err, datasets.ErrRecords) || !errors.Is(err, tensor.ErrFile) || l.Len() != 0 {
		t.Errorf("%v, want ErrRecords and ErrFile", err)
	}
}

func FuzzRecords(f *testing.F) {
	f.Add(tensor.Bytes(datasets.NewList(names(4)).Block), "a")
	f.Add(tensor.Bytes(datasets.NewMap(maps.All(map[string]string{"a": "1", "b": "22"})).Block), "a")
	f.Fuzz(func(t *testing.T, b []byte, key string) {
		b = datasets.Resum(slices.Clone(b)) // or nothing would get past the checksum
		path := filepath.Join(t.TempDir(), "records")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		if l, err := datasets.OpenList(path); err == nil {
			for range recordsOf(l) {
			}
			l.Close()
		}
		if m, err := datasets.OpenMap(path); err == nil {
			for range m.All() {
			}
			// only its index was checked
			if _, _, err := m.Get(key); err != nil && !errors.Is(err, datasets.ErrRecords) {
				t.Error(err)
			}
			m.Close()
		}
	})
}
