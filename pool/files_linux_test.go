package pool_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/pool"
)

// write writes to the first file of its worker, or with the empty text ends it.
var write = pool.Register("write", func(ctx context.Context, text string) (int, error) {
	if text == "" {
		os.Exit(3)
	}
	f, err := shoal.File(ctx, 0)
	if err != nil {
		return 0, err
	}
	return fmt.Fprintln(f, text)
})

// lines says how many a file has that is sent as a task's argument.
var lines = pool.Register("lines", func(ctx context.Context, f *os.File) (int, error) {
	defer f.Close()
	b, err := io.ReadAll(f)
	return strings.Count(string(b), "\n"), err
})

func TestOptions_EveryWorkerHasTheFiles(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := pool.New(ctx, pool.Options{Workers: 1, Process: shoal.Options{Files: []*os.File{w}}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := w.Close(); err != nil { // the pool has its own
		t.Fatal(err)
	}
	for _, text := range []string{"one", "", "two", "", "three"} {
		if _, err := write.Apply(ctx, p, text); (err == nil) != (text != "") {
			t.Errorf("%q: %v", text, err)
		}
	}
	p.Close()
	if n, err := lines.Apply(ctx, p, r); err == nil {
		t.Errorf("a pool that is closed has counted %d lines", n)
	}
	other, err := pool.New(ctx, pool.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if n, err := lines.Apply(ctx, other, r); n != 3 || err != nil { // the end comes when the pool's own is closed
		t.Errorf("%d lines, %v", n, err)
	}
	if _, err := pool.New(ctx, pool.Options{Workers: 1, Process: shoal.Options{Files: []*os.File{w}}}); err == nil {
		t.Error("a closed file is taken")
	}
}
