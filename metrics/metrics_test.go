package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	promtest "github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/figures"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/metrics"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestMain(m *testing.M) { shoaltest.TestMain(m) }

const patience = time.Minute // far beyond what anything here takes

type job struct {
	Jobs  *ipc.Receiver[*tensor.Tensor]
	Ready *ipc.Sender[bool]
	Lock  *ipc.Mutex
}

// work holds the lock and waits for messages.
var work = shoal.Register("metrics worker", func(ctx context.Context, _ int, j job) error {
	err := j.Lock.Lock(ctx)
	for _, failed := range j.Jobs.All(ctx) {
		if err = errors.Join(err, failed); err == nil {
			err = j.Ready.Put(ctx, true)
		}
	}
	return err
})

// scrape returns the value of each line.
func scrape(t *testing.T) map[string]float64 {
	t.Helper()
	w := httptest.NewRecorder()
	metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text, err := io.ReadAll(w.Result().Body)
	if err != nil || w.Code != 200 {
		t.Fatalf("status %d, %v: %s", w.Code, err, text)
	}
	got := make(map[string]float64)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		i := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || i < 0 {
			continue
		}
		name, value := line[:i], line[i+1:]
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			got[name] = v
		}
	}
	return got
}

// until waits for metrics to have these values.
func until(t *testing.T, want map[string]float64) {
	t.Helper()
	testutil.EventuallyNoError(t, func() error {
		got, wrong := scrape(t), ""
		for name, v := range want {
			if now, ok := got[name]; !ok || now != v {
				wrong += name + " is " + strconv.FormatFloat(now, 'g', -1, 64) + "\n"
			}
		}
		if wrong != "" {
			return fmt.Errorf("%s in %v", wrong, got)
		}
		return nil
	})
}

func TestCollector_FollowsAProgram(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	jobs, err1 := ipc.NewQueue[*tensor.Tensor](4)
	ready, err2 := ipc.NewQueue[bool](4)
	lock, err3 := ipc.NewMutex()
	testutil.NoError(t, errors.Join(err1, err2, err3))
	defer jobs.Close()
	defer ready.Close()
	defer lock.Close()
	testutil.NoError(t,
		errors.Join(ipc.Bind(ctx, "jobs", jobs), ipc.Bind(ctx, "lock", lock), ipc.Bind(ctx, "again", jobs)))
	defer ipc.Unlink("jobs")
	defer ipc.Unlink("again")
	defer ipc.Unlink("lock")
	put := func() {
		t.Helper()
		x, err := tensor.NewShared(tensor.Float32, 1<<10)
		testutil.NoError(t, err)
		testutil.NoError(t, jobs.Put(ctx, x.Give()))
	}
	put()
	put()
	until(t, map[string]float64{
		`shoal_queue_depth{queue="again"}`: 2, `shoal_queue_capacity{queue="again"}`: 4, // the first of its names
		`shoal_queue_puts_total{queue="again"}`: 2, `shoal_queue_gets_total{queue="again"}`: 0,
		`shoal_lock_held{kind="mutex",lock="lock"}`: 0, `shoal_processes{state="live"}`: 1,
		`shoal_processes_reaped_total`: 0})

	g := shoal.NewGroup(ctx, shoal.Options{})
	defer g.Close()
	p := work.Go(g, job{jobs.Receiver(), ready.Sender(), lock})
	until(t, map[string]float64{
		`shoal_queue_depth{queue="again"}`: 0, `shoal_queue_gets_total{queue="again"}`: 2,
		`shoal_queue_waiting{end="receive",queue="again"}`: 1, `shoal_queue_waiting{end="send",queue="again"}`: 0,
		`shoal_lock_held{kind="mutex",lock="lock"}`: 1, `shoal_processes{state="live"}`: 2})
	now := scrape(t)
	for _, name := range []string{`shoal_memory_held_bytes{pid="` + strconv.Itoa(p.PID()) + `"}`,
		`shoal_memory_held_bytes{pid="` + strconv.Itoa(os.Getpid()) + `"}`, "shoal_memory_used_bytes",
		"shoal_memory_committed_bytes", "shoal_allocations_total", `shoal_blocks{kind="ring"}`} {
		if now[name] <= 0 {
			t.Errorf("%s is %v", name, now[name])
		}
	}
	if now["shoal_memory_limit_bytes"] < now["shoal_memory_committed_bytes"] {
		t.Errorf("limit %v, committed %v", now["shoal_memory_limit_bytes"], now["shoal_memory_committed_bytes"])
	}
	if _, twice := now[`shoal_queue_depth{queue="jobs"}`]; twice {
		t.Error("a queue with two names is there twice")
	}

	testutil.NoError(t, p.Signal(os.Kill))
	until(t, map[string]float64{`shoal_processes{state="live"}`: 1, `shoal_processes_reaped_total`: 1,
		`shoal_lock_held{kind="mutex",lock="lock"}`: 0})
	g.Wait()
}

// failing fails in its first life.
var failing = shoal.Register("metrics failing", func(_ context.Context, _ int, lives *ipc.Value[int64]) error {
	if n, err := lives.Add(1); err != nil || n > 1 {
		return err
	}
	return errors.New("not yet")
})

// dying ends its worker in its first run.
var dying = pool.Register("metrics dying", func(_ context.Context, runs *ipc.Value[int64]) (int, error) {
	if n, err := runs.Add(1); err != nil || n > 1 {
		return int(n), err
	}
	panic("not yet")
})

func TestCollector_CountsRestartsAndRetries(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	lives, err1 := ipc.NewValue[int64](0)
	runs, err2 := ipc.NewValue[int64](0)
	testutil.NoError(t, errors.Join(err1, err2))
	defer lives.Close()
	defer runs.Close()
	before := scrape(t)
	g := shoal.NewGroup(ctx, shoal.Options{Restart: shoal.Restart{Max: 1, Backoff: time.Millisecond}})
	failing.Go(g, lives)
	testutil.NoError(t, g.Wait())
	p, err := pool.New(ctx, pool.Options{Workers: 1, Retries: 1})
	testutil.NoError(t, err)
	defer p.Close()
	_, err = dying.Apply(ctx, p, runs)
	testutil.NoError(t, err)
	now := scrape(t)
	for _, name := range []string{"shoal_process_restarts_total", "shoal_task_retries_total"} {
		if got := now[name] - before[name]; got != 1 {
			t.Errorf("%s grew by %v, want 1", name, got)
		}
	}
}

func TestCollector_KeepsTheRulesOfPrometheus(t *testing.T) {
	problems, err := promtest.CollectAndLint(metrics.NewCollector())
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// The dashboard and the list of the package's documentation name what there is.
func TestDashboard_NamesWhatThereIs(t *testing.T) {
	page, err := os.ReadFile("doc.go")
	testutil.NoError(t, err)
	dashboard, err := os.ReadFile("../docs/grafana.json")
	testutil.NoError(t, err)
	names := make(map[string]bool)
	for _, f := range figures.All() {
		names[f.Prometheus()] = true
	}
	if len(names) < 19 {
		t.Fatalf("%d metrics", len(names))
	}
	named := regexp.MustCompile(`\bshoal_\w+`)
	for _, text := range []string{string(page), string(dashboard)} {
		for _, name := range named.FindAllString(text, -1) {
			if !names[name] {
				t.Errorf("%s is no metric", name)
			}
		}
	}
	for name := range names {
		if !strings.Contains(string(page), name) || !strings.Contains(string(dashboard), name) {
			t.Errorf("%s is not in both", name)
		}
	}
}

func ExampleNewCollector() {
	registry := prometheus.NewRegistry() // of the program's own metrics
	registry.MustRegister(metrics.NewCollector())
	families, err := registry.Gather()
	if err != nil {
		panic(err)
	}
	for _, f := range families {
		if f.GetName() == "shoal_memory_limit_bytes" {
			fmt.Println(f.GetHelp())
		}
	}
	// Output: Budget of shared memory.
}

func ExampleHandler() {
	w := httptest.NewRecorder()
	metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "# TYPE shoal_copied") {
			fmt.Print(line)
		}
	}
	// Output: # TYPE shoal_copied_bytes_total counter
}
