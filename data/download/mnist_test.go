package download_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/data/download"
)

// contents is longer than the pieces that are read at once.
var contents = bytes.Repeat([]byte("0123456789abcdef"), 20_000)

// mirror serves contents as the file "set.gz", and counts the requests and those of them that ask
// for a part.
type mirror struct {
	serve          http.HandlerFunc
	asked, resumed int
}

func (m *mirror) start(t *testing.T) (url string, client *http.Client) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.asked++
		if r.Header.Get("Range") != "" {
			m.resumed++
		}
		m.serve(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/sets/", s.Client()
}

func whole(w http.ResponseWriter, r *http.Request) {
	http.ServeContent(w, r, "set.gz", time.Time{}, bytes.NewReader(contents))
}

// half promises all and breaks the connection in the middle.
func half(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Length", "320000")
	w.Write(contents[:150_000])
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

func fetch(t *testing.T, m *mirror, dir string, progress func(name string, done, total int64)) error {
	url, client := m.start(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return download.Fetch(ctx, client, "set.gz", contents, dir, download.Options{Mirror: url, Progress: progress})
}

// names returns what is in dir.
func names(t *testing.T, dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func isWhole(t *testing.T, dir string) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(dir, "set.gz"))
	if err != nil || !bytes.Equal(got, contents) {
		t.Errorf("%d bytes, %v; want the file", len(got), err)
	}
	if n := names(t, dir); !slices.Equal(n, []string{"set.gz"}) {
		t.Errorf("%q is left in the directory", n)
	}
}

func TestMNIST_FetchesAFileOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "dir")
	m := &mirror{serve: whole}
	var seen []int64
	for range 2 {
		if err := fetch(t, m, dir, func(_ string, done, total int64) { seen = append(seen, done) }); err != nil {
			t.Fatal(err)
		}
	}
	isWhole(t, dir)
	if m.asked != 1 {
		t.Errorf("%d requests, want 1", m.asked)
	}
	if !slices.IsSorted(seen) || seen[len(seen)-1] != int64(len(contents)) {
		t.Errorf("progress %v", seen)
	}
}

func TestFetch_ContinuesABrokenConnection(t *testing.T) {
	dir := t.TempDir()
	if err := fetch(t, &mirror{serve: half}, dir, nil); !errors.Is(err, download.ErrPartial) {
		t.Fatalf("%v, want ErrPartial", err)
	}
	if n := names(t, dir); !slices.Equal(n, []string{"set.gz.part"}) {
		t.Fatalf("%q after a broken connection", n)
	}
	m := &mirror{serve: whole}
	if err := fetch(t, m, dir, nil); err != nil {
		t.Fatal(err)
	}
	isWhole(t, dir)
	if m.resumed != 1 {
		t.Error("the rest was not asked for")
	}
}

func TestFetch_TakesAllOfAServerThatDoesNotContinue(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "set.gz.part"), []byte("other"), 0o644); err != nil {
		t.Fatal(err)
	}
	m := &mirror{serve: func(w http.ResponseWriter, r *http.Request) { w.Write(contents) }}
	if err := fetch(t, m, dir, nil); err != nil {
		t.Fatal(err)
	}
	isWhole(t, dir)
}

func TestFetch_RefusesAnotherFile(t *testing.T) {
	other := bytes.ToUpper(contents)
	for name, body := range map[string][]byte{"same length": other, "longer": append(slices.Clone(contents), 0)} {
		dir := t.TempDir()
		err := fetch(t, &mirror{serve: func(w http.ResponseWriter, r *http.Request) { w.Write(body) }}, dir, nil)
		if !errors.Is(err, download.ErrChecksum) {
			t.Errorf("%s: %v, want ErrChecksum", name, err)
		}
		if n := names(t, dir); len(n) != 0 {
			t.Errorf("%s: %q is left", name, n)
		}
	}
}

func TestFetch_DoesNotContinueABadPartForEver(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "set.gz.part"), []byte("other"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := fetch(t, &mirror{serve: whole}, dir, nil); !errors.Is(err, download.ErrChecksum) {
		t.Fatalf("%v, want ErrChecksum", err)
	}
	if err := fetch(t, &mirror{serve: whole}, dir, nil); err != nil {
		t.Fatal(err)
	}
	isWhole(t, dir)
}

func TestFetch_AnEarlyEndIsPartial(t *testing.T) {
	dir := t.TempDir()
	err := fetch(t, &mirror{serve: func(w http.ResponseWriter, r *http.Request) { w.Write(contents[:1000]) }}, dir, nil)
	if !errors.Is(err, download.ErrPartial) || !strings.Contains(err.Error(), "1000 of 320000") {
		t.Errorf("%v, want ErrPartial with the numbers", err)
	}
}

func TestFetch_ARefusalNamesTheAddress(t *testing.T) {
	err := fetch(t, &mirror{serve: http.NotFound}, t.TempDir(), nil)
	if !errors.Is(err, download.ErrStatus) || !strings.Contains(err.Error(), "/sets/set.gz") ||
		!strings.Contains(err.Error(), "404") {
		t.Errorf("%v, want ErrStatus with the address", err)
	}
}

func TestFetch_CancelledKeepsWhatCame(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	m := &mirror{serve: func(w http.ResponseWriter, r *http.Request) {
		w.Write(contents[:100_000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}}
	url, client := m.start(t)
	progress := func(_ string, done, _ int64) {
		if done > 0 {
			cancel()
		}
	}
	err := download.Fetch(ctx, client, "set.gz", contents, dir, download.Options{Mirror: url, Progress: progress})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
	if n := names(t, dir); !slices.Equal(n, []string{"set.gz.part"}) {
		t.Errorf("%q after a cancelled fetch", n)
	}
}

// A server that falls silent, before its answer or in the middle of it, is left, and what came is
// kept. One that is slow is not left.
func TestFetch_LeavesASilentServer(t *testing.T) {
	download.SetPatience(t, 200*time.Millisecond)
	silent := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	stuck := func(w http.ResponseWriter, r *http.Request) {
		w.Write(contents[:1000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	for _, serve := range []http.HandlerFunc{silent, stuck} {
		dir := t.TempDir()
		err := fetch(t, &mirror{serve: serve}, dir, nil)
		if !errors.Is(err, download.ErrPartial) || !strings.Contains(err.Error(), "no data for") {
			t.Errorf("%v, want ErrPartial with the reason", err)
		}
		if err := fetch(t, &mirror{serve: whole}, dir, nil); err != nil {
			t.Error(err)
		}
		isWhole(t, dir)
	}
	dir := t.TempDir()
	err := fetch(t, &mirror{serve: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "320000")
		for begin := 0; begin < len(contents); begin += 20_000 {
			w.Write(contents[begin:][:20_000])
			w.(http.Flusher).Flush()
			time.Sleep(20 * time.Millisecond)
		}
	}}, dir, nil)
	if err != nil {
		t.Error(err)
	}
	isWhole(t, dir)
}

func TestMNIST_AsksTheMirrorThatIsGiven(t *testing.T) {
	m := &mirror{serve: http.NotFound}
	url, _ := m.start(t)
	err := download.MNIST(t.Context(), t.TempDir(), download.Options{Mirror: url})
	if !errors.Is(err, download.ErrStatus) || m.asked != 1 {
		t.Errorf("%v after %d requests, want ErrStatus after one", err, m.asked)
	}
	if len(download.Files()) != 4 {
		t.Errorf("MNIST has %d files", len(download.Files()))
	}
}
