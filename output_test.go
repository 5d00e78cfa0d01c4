package shoal_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/test/testutil"
)

// talk writes lines in pieces, and one of them is long.
var talk = shoal.Register("talk", func(_ context.Context, rank int, n int) error {
	for i := range n {
		for _, piece := range []string{"<", strings.Repeat(fmt.Sprint(rank), 10+i%7*1000), ">\n"} {
			io.WriteString(os.Stdout, piece)
		}
		fmt.Fprintf(os.Stderr, "error %d\n", i)
	}
	fmt.Print("<no end>")
	return nil
})

// whole reports what is wrong with the lines of talk.
func whole(out string, prefix bool) error {
	for line := range strings.Lines(out) {
		rank := ""
		if prefix {
			var ok bool
			if rank, line, ok = strings.Cut(line, "] "); !ok {
				return fmt.Errorf("no prefix: %.40q", line)
			}
			rank = strings.TrimPrefix(rank, "[talk ")
		}
		body := strings.TrimSuffix(strings.TrimPrefix(line, "<"), ">\n")
		if len(body) != len(line)-3 || strings.ContainsAny(body, "<>") {
			return fmt.Errorf("a line is cut: %.40q", line)
		}
		if body != "no end" && strings.Trim(body, body[:1]) != "" ||
			rank != "" && body != "no end" && body[:1] != rank {
			return fmt.Errorf("two lines are mixed: rank %s, %.40q", rank, line)
		}
	}
	return nil
}

func TestOutput_ArrivesInWholeLines(t *testing.T) {
	t.Parallel()
	for _, mode := range []shoal.Output{shoal.Lines, shoal.PrefixRank} {
		var out, errs strings.Builder
		g := shoal.NewGroup(testutil.Context(t), shoal.Options{Output: mode, Stdout: &out, Stderr: &errs})
		for range 3 {
			talk.Go(g, 50)
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		if err := whole(out.String(), mode == shoal.PrefixRank); err != nil {
			t.Errorf("mode %v: %v", mode, err)
		}
		if n := strings.Count(out.String(), "\n"); n != 3*51 {
			t.Errorf("mode %v: %d lines, want %d", mode, n, 3*51)
		}
		if n := strings.Count(errs.String(), "error "); n != 3*50 {
			t.Errorf("mode %v: %d lines on stderr, want %d", mode, n, 3*50)
		}
	}
}

func TestOutput_DoesNotCutLinesOfTheStarter(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	all := make(chan string)
	go func() {
		b, _ := io.ReadAll(r)
		all <- string(b)
	}()
	g := shoal.NewGroup(testutil.Context(t), shoal.Options{Stdout: w, Stderr: io.Discard})
	for range 2 {
		talk.Go(g, 100)
	}
	own := "<" + strings.Repeat("9", 9000) + ">" // longer than a pipe writes at once
	for range 100 {
		fmt.Fprintln(w, own)
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	out := <-all
	if err := whole(out, false); err != nil {
		t.Error(err)
	}
	if n := strings.Count(out, own+"\n"); n != 100 {
		t.Errorf("%d of the starter's 100 lines are whole", n)
	}
}

func TestOutput_ToFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	g := shoal.NewGroup(testutil.Context(t), shoal.Options{Output: shoal.Files, Dir: dir})
	talk.Go(g, 3)
	fails.Go(g, "exit")
	pe, ok := g.Wait().(*shoal.ProcessError)
	if !ok || pe.Stderr != "last words" {
		t.Errorf("got %+v", pe)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "fails.0.out")); string(b) != "pending output" {
		t.Errorf("stdout %q, %v", b, err)
	}
}

var leavesHeir = shoal.Register("leavesHeir", func(context.Context, int, struct{}) error {
	_, err := os.StartProcess("/bin/sleep", []string{"sleep", "60"},
		&os.ProcAttr{Files: []*os.File{nil, os.Stdout, os.Stderr}})
	fmt.Print("done")
	return err
})

func TestOutput_HeldByAnotherProgramDoesNotDelayTheEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(testutil.Context(t))
	defer cancel()
	var out strings.Builder
	g := shoal.NewGroup(ctx, shoal.Options{Stdout: &out})
	leavesHeir.Go(g, struct{}{})
	if err := g.Wait(); err != nil || out.String() != "done\n" {
		t.Errorf("%v, output %q", err, out.String())
	}
}

// exitingWriter ends the goroutine that writes to it.
type exitingWriter struct{}

func (exitingWriter) Write([]byte) (int, error) { runtime.Goexit(); return 0, nil }

func TestOutput_AWriterThatCallsGoexitBlocksNoWorker(t *testing.T) {
	g := shoal.NewGroup(testutil.Context(t), shoal.Options{Stdout: exitingWriter{}})
	talk.Go(g, 50) // more than a pipe holds
	testutil.NoError(t, g.Wait())
}

// panickingWriter is a writer with a fault.
type panickingWriter struct{}

func (panickingWriter) Write([]byte) (int, error) { panic("on purpose") }

func TestOutput_AWriterThatPanicsEndsNothing(t *testing.T) {
	g := shoal.NewGroup(testutil.Context(t), shoal.Options{Stdout: panickingWriter{}})
	talk.Go(g, 50) // more than a pipe holds
	testutil.NoError(t, g.Wait())
}
