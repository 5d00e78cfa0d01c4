package data_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/data"
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

func TestAListHasItsRecords(t *testing.T) {
	for _, n := range []int{0, 1, 5, 1000} {
		want := names(n)
		l := data.NewList(want)
		path := filepath.Join(t.TempDir(), "list")
		if err := l.Save(path); err != nil {
			t.Fatal(err)
		}
		opened, err := data.OpenList(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range []*data.List{l, opened} {
			var got []string
			for _, r := range l.All() {
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

func TestAMapFindsItsKeys(t *testing.T) {
	for _, n := range []int{0, 1, 2, 7, 1000} {
		want := map[string]string{}
		for i := range n {
			want[fmt.Sprint("key ", i)] = fmt.Sprint("value ", i*i)
		}
		m := data.NewMap(maps.All(want))
		path := filepath.Join(t.TempDir(), "map")
		if err := m.Save(path); err != nil {
			t.Fatal(err)
		}
		opened, err := data.OpenMap(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []*data.Map{m, opened} {
			for k, v := range want {
				if got, ok := m.Get(k); !ok || string(got) != v {
					t.Errorf("%q: %q, %v", k, got, ok)
				}
			}
			if got, ok := m.Get("nobody"); ok {
				t.Errorf("a key that is not there: %q", got)
			}
			if n := len(maps.Collect(m.All())); m.Len() != len(want) || n != len(want) {
				t.Errorf("%d keys, %d in All, want %d", m.Len(), n, len(want))
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	twice := data.NewMap(func(yield func(string, string) bool) { _ = yield("k", "1") && yield("k", "2") })
	if v, _ := twice.Get("k"); string(v) != "2" || twice.Len() != 1 {
		t.Errorf("a key that comes twice: %q of %d", v, twice.Len())
	}
}

// look is what a worker does with a List and a Map: it finds a record in them, and says where the memory is.
type look struct {
	List *data.List
	Map  *data.Map
}

type found struct {
	Record, Value string
	Shared        bool
}

var lookUp = pool.Register("test look", func(_ context.Context, l look) (found, error) {
	v, _ := l.Map.Get("record 16")
	return found{string(l.List.At(4)), string(v), l.List.Block.IsShared() && l.Map.Block.IsShared()}, nil
})

func TestAListAndAMapGoToWorkersWithoutACopy(t *testing.T) {
	l := data.NewList(names(10))
	m := data.NewMap(func(yield func(string, string) bool) {
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

func TestDamagedRecordsAreAnError(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "map")
	m := data.NewMap(maps.All(map[string]string{"a": "1", "b": "22", "c": "333"}))
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
		var file *data.FileError
		if !errors.As(err, &file) || !errors.Is(err, data.ErrRecords) || file.Path != path {
			t.Errorf("%s: %v, want a FileError that wraps ErrRecords", what, err)
		}
	}
	openMap := func(p string) error { m, err := data.OpenMap(p); _ = m; return err }
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
	check("a map as a list", good, func(p string) error { _, err := data.OpenList(p); return err })
	if _, err := data.OpenList(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func FuzzRecords(f *testing.F) {
	f.Add(tensor.Bytes(data.NewList(names(4)).Block), "a")
	f.Add(tensor.Bytes(data.NewMap(maps.All(map[string]string{"a": "1", "b": "22"})).Block), "a")
	f.Fuzz(func(t *testing.T, b []byte, key string) {
		b = data.Resum(slices.Clone(b)) // or nothing would get past the checksum
		path := filepath.Join(t.TempDir(), "records")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		if l, err := data.OpenList(path); err == nil {
			for range l.All() {
			}
			l.Close()
		}
		if m, err := data.OpenMap(path); err == nil {
			for range m.All() {
			}
			m.Get(key)
			m.Close()
		}
	})
}
