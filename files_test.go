package shoal_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/test/testutil"
)

// note writes a line to the first of its files.
var note = shoal.Register("note", func(ctx context.Context, rank int, text string) error {
	f, err := shoal.File(ctx, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s %d %s\n", text, rank, f.Name())
	return err
})

// pipe returns a pipe, of which the test closes what is left open.
func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// readLines reads to the end, which comes when nobody has the other side any more.
func readLines(t *testing.T, r *os.File) []string {
	t.Helper()
	r.SetReadDeadline(time.Now().Add(watchdog))
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("%v, after %q", err, b)
	}
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	slices.Sort(lines)
	return lines
}

func TestFile_ReachesEveryWorker(t *testing.T) {
	everyStart(t, func(t *testing.T, opts shoal.Options) {
		r, w := pipe(t)
		opts.Files = []*os.File{w}
		g, err := note.Start(testutil.Context(t), 3, "from", opts)
		if err != nil {
			t.Fatal(err)
		}
		w.Close() // the workers have their own; the end of the pipe comes with the last of them
		want := []string{"from 0 |1", "from 1 |1", "from 2 |1"}
		if got := readLines(t, r); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// again fails the first time.
var again = shoal.Register("again", func(ctx context.Context, rank int, dir string) error {
	f, err := shoal.File(ctx, 0)
	if err != nil {
		return err
	}
	mark := filepath.Join(dir, "failed")
	_, failed := os.Stat(mark)
	fmt.Fprintf(f, "failed before: %v\n", failed == nil)
	if failed != nil {
		return errors.Join(os.WriteFile(mark, nil, 0o666), errors.New("the first time it fails"))
	}
	return nil
})

func TestFile_IsThereAgainAfterARestart(t *testing.T) {
	everyStart(t, func(t *testing.T, opts shoal.Options) {
		r, w := pipe(t)
		opts.Files = []*os.File{w}
		opts.Restart = shoal.Restart{Max: 1, Backoff: time.Millisecond}
		g, err := again.Start(testutil.Context(t), 1, t.TempDir(), opts)
		if err != nil {
			t.Fatal(err)
		}
		w.Close() // the second life has one although ours is closed
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
		if got := readLines(t, r); !slices.Equal(got, []string{"failed before: false", "failed before: true"}) {
			t.Errorf("got %q", got)
		}
	})
}

type logging struct {
	Log *os.File
	Any any
	Nil *os.File
}

var logs = shoal.Register("logs", func(ctx context.Context, rank int, l logging) error {
	if l.Nil != nil {
		return errors.New("nil arrived as a file")
	}
	fmt.Fprintln(l.Log, "log")
	fmt.Fprintln(l.Any.(*os.File), "any")
	return errors.Join(l.Log.Close(), l.Any.(*os.File).Close())
})

func TestRegression_S2_7_AFileInAnArgumentTravels(t *testing.T) {
	everyStart(t, func(t *testing.T, opts shoal.Options) {
		r, w := pipe(t)
		g, err := logs.Start(testutil.Context(t), 2, logging{Log: w, Any: w}, opts)
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
		if got := readLines(t, r); !slices.Equal(got, []string{"any", "any", "log", "log"}) {
			t.Errorf("got %q", got)
		}
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// greet accepts a connection on the listener that it was given, and says who it is.
var greet = shoal.Register("greet", func(ctx context.Context, rank int, _ struct{}) error {
	f, err := shoal.File(ctx, 0)
	if err != nil {
		return err
	}
	l, err := net.FileListener(f)
	if err != nil {
		return err
	}
	defer l.Close()
	c, err := l.Accept()
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = fmt.Fprintln(c, "rank", rank)
	return err
})

func TestFile_MayBeAListener(t *testing.T) {
	everyStart(t, func(t *testing.T, opts shoal.Options) {
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		f, err := l.File()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		opts.Files = []*os.File{f}
		g, err := greet.Start(testutil.Context(t), 2, struct{}{}, opts)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for range 2 {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(watchdog))
			b, err := io.ReadAll(c)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(b))
		}
		slices.Sort(got)
		if want := []string{"rank 0\n", "rank 1\n"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	})
}

func TestFile_ThatCannotBePassedIsNamed(t *testing.T) {
	everyStart(t, func(t *testing.T, opts shoal.Options) {
		err := note.Go(shoal.NewGroup(testutil.Context(t), opts), "none").Wait(testutil.Context(t))
		if !errors.Is(err, fs.ErrNotExist) ||
			!strings.Contains(err.Error(), "Options.Files index 0 out of range, this process has 0 files") {
			t.Errorf("without files: %v", err)
		}
		_, w := pipe(t)
		w.Close()
		opts.Files = []*os.File{w}
		if _, err := note.Start(testutil.Context(t), 1, "closed", opts); !errors.Is(err, shoal.ErrArgument) ||
			!errors.Is(err, os.ErrClosed) {
			t.Errorf("a closed file: %v", err)
		}
		opts.Files = []*os.File{nil}
		err = note.Go(shoal.NewGroup(testutil.Context(t), opts), "nil").Wait(testutil.Context(t))
		if err == nil || !strings.Contains(err.Error(), "Options.Files[0] is nil") {
			t.Errorf("a nil file: %v", err)
		}
	})
}
