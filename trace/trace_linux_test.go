package trace_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/test/timeline"
	"github.com/shoal-mp/shoal/trace"
)

// endless names the file of a program that writes spans until it is killed.
const endless = "SHOAL_TEST_ENDLESS_TRACE"

func TestMain(m *testing.M) {
	if path := os.Getenv(endless); path != "" && !shoal.IsWorker() {
		writeForEver(path)
	}
	shoaltest.TestMain(m)
}

func writeForEver(path string) {
	t, err := trace.Create(path)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	k := t.Track("endless")
	for i := 0; ; i++ {
		at := k.Now()
		k.Span("step", at, k.Now())
		if i%50 == 0 {
			t.Flush()
		}
	}
}

// stepping is a worker's argument.
type stepping struct {
	Trace  *trace.Trace
	Steps  int
	Told   *ipc.Sender[int] // its number, once its spans are on their way
	Linger bool             // until it is killed
}

var step = shoal.Register("step", func(ctx context.Context, rank int, s stepping) error {
	k := s.Trace.Track(fmt.Sprint("rank ", rank))
	all := k.Now()
	for range s.Steps {
		begin := k.Now()
		time.Sleep(time.Microsecond)
		middle := k.Now()
		k.Span("forward", begin, middle)
		k.Span("backward", middle, k.Now())
		k.Span("step", begin, k.Now())
	}
	k.Span("all", all, k.Now())
	s.Trace.Flush()
	if err := s.Told.Put(ctx, os.Getpid()); err != nil || !s.Linger {
		return errors.Join(err, s.Trace.Close())
	}
	<-ctx.Done()
	return nil
})

// trackOf returns the track of a name.
func trackOf(t *testing.T, l *timeline.Log, name string) *timeline.Track {
	t.Helper()
	for _, k := range l.Tracks {
		if k.Name == name {
			return k
		}
	}
	t.Fatalf("no track %q among %d", name, len(l.Tracks))
	return nil
}

func read(t *testing.T, path string) *timeline.Log {
	t.Helper()
	l, err := timeline.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestProcessesHaveOneFileAndOneClock(t *testing.T) {
	shoaltest.NoLeaks(t)
	path := filepath.Join(t.TempDir(), "t.json")
	tr, err := trace.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	told, err := ipc.NewQueue[int](8)
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	k := tr.Track("main")
	begin := k.Now()
	g := shoal.NewGroup(t.Context(), shoal.Options{})
	defer g.Close()
	const workers, steps = 3, 1500 // more than a letter has
	for range workers {
		step.Go(g, stepping{Trace: tr, Steps: steps, Told: told.Sender()})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	k.Span("main", begin, k.Now())
	if err := errors.Join(tr.Close(), tr.Close()); err != nil {
		t.Fatal(err)
	}
	k.Span("late", begin, k.Now())
	l := read(t, path)
	if len(l.Tracks) != workers+1 || l.Lost != 0 || len(l.Processes) != workers+1 {
		t.Errorf("%d tracks of %d processes, %d spans lost", len(l.Tracks), len(l.Processes), l.Lost)
	}
	main := trackOf(t, l, "main")
	if len(main.Spans) != 1 || main.PID != os.Getpid() {
		t.Fatalf("%+v", main)
	}
	pids := make(map[int]bool)
	for rank := range workers {
		k := trackOf(t, l, fmt.Sprint("rank ", rank))
		pids[k.PID] = true
		if l.Processes[k.PID] != fmt.Sprint("step ", rank) {
			t.Errorf("rank %d is %q", rank, l.Processes[k.PID])
		}
		for _, name := range []string{"forward", "backward", "step"} {
			if _, n := k.Sum(name); n != steps {
				t.Errorf("rank %d: %d times %s, want %d", rank, n, name, steps)
			}
		}
		for _, s := range k.Spans {
			if want := map[string]int{"all": 0, "step": 1, "forward": 2, "backward": 2}[s.Name]; s.Depth != want {
				t.Fatalf("rank %d: %+v at another depth than %d", rank, s, want)
			}
			if s.Begin < main.Spans[0].Begin || s.End > main.Spans[0].End {
				t.Fatalf("rank %d: %+v is not within %+v: the clocks differ", rank, s, main.Spans[0])
			}
		}
	}
	if len(pids) != workers {
		t.Errorf("processes %v", pids)
	}
}

func TestTheFileIsValidWhereAWorkerIsKilled(t *testing.T) {
	shoaltest.NoLeaks(t)
	path := filepath.Join(t.TempDir(), "t.json")
	tr, err := trace.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	told, err := ipc.NewQueue[int](8)
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	g := shoal.NewGroup(t.Context(), shoal.Options{})
	defer g.Close()
	step.Go(g, stepping{Trace: tr, Steps: 100, Told: told.Sender(), Linger: true})
	pid, err := told.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := g.Wait(); err == nil {
		t.Error("nobody was killed")
	}
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	l := read(t, path)
	if k := trackOf(t, l, "rank 0"); k.PID != pid || len(k.Spans) != 301 {
		t.Errorf("process %d of %d, %d spans", k.PID, pid, len(k.Spans))
	}
}

func TestTheFileIsValidWhereItsWriterIsKilled(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for try := range 5 {
		dir := t.TempDir()
		path := filepath.Join(dir, "t.json")
		c := exec.Command(self)
		c.Env = append(os.Environ(), endless+"="+path)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		for { // at some other moment each time
			info, err := os.Stat(path)
			if err == nil && info.Size() >= int64(128<<10<<(try%3)) {
				break
			}
			if err := c.Process.Signal(syscall.Signal(0)); err != nil {
				t.Fatalf("the program has ended: %v", err)
			}
			time.Sleep(time.Millisecond)
		}
		c.Process.Kill()
		c.Wait()
		l := read(t, path)
		if len(l.Tracks) != 1 || len(l.Tracks[0].Spans) < 500 {
			t.Errorf("%d tracks, %d events", len(l.Tracks), len(l.Tracks[0].Spans))
		}
	}
}

func TestWhereThereIsNoTraceNothingIsDone(t *testing.T) {
	var none *trace.Trace
	k := none.Track("nothing")
	if n := testing.AllocsPerRun(100, func() { k.Span("x", k.Now(), k.Now()) }); n != 0 || !k.Now().IsZero() {
		t.Errorf("%v allocations", n)
	}
	none.Flush()
	if err := none.Close(); err != nil {
		t.Error(err)
	}
}

func TestWhatIsNoFileIsRefused(t *testing.T) {
	shoaltest.NoLeaks(t)
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, fifo, filepath.Join(dir, "none", "t.json"), "/dev/null"} {
		if tr, err := trace.Create(path); err == nil || tr != nil {
			t.Errorf("%s: %v", path, tr)
		}
	}
}
