package shoalotel_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/figures"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/shoalotel"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A collection has the points of one reading by name and attributes, and what is said of them.
type collection struct {
	points map[string]int64
	told   map[string]metricdata.Metrics
}

func collect(t *testing.T, reader sdkmetric.Reader) collection {
	t.Helper()
	var all metricdata.ResourceMetrics
	testutil.NoError(t, reader.Collect(t.Context(), &all))
	c := collection{make(map[string]int64), make(map[string]metricdata.Metrics)}
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			c.told[m.Name] = m
			sum, ok := m.Data.(metricdata.Sum[int64])
			if !ok {
				t.Fatalf("%s is a %T", m.Name, m.Data)
			}
			for _, p := range sum.DataPoints {
				c.points[m.Name+"{"+p.Attributes.Encoded(attribute.DefaultEncoder())+"}"] = p.Value
			}
		}
	}
	return c
}

// holding holds a lock and waits for a message.
type holding struct {
	Jobs *ipc.Receiver[*tensor.Tensor]
	Lock *ipc.Mutex
}

var hold = shoal.Register("hold", func(ctx context.Context, _ int, h holding) error {
	err := h.Lock.Lock(ctx)
	for x, failed := range h.Jobs.All(ctx) {
		err = errors.Join(err, failed)
		if x != nil {
			err = errors.Join(err, x.Close())
		}
	}
	return err
})

func TestObserveFollowsAProgram(t *testing.T) {
	shoaltest.NoLeaks(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	defer provider.Shutdown(context.Background())
	registration, err := shoalotel.Observe(provider)
	testutil.NoError(t, err)
	jobs := queue[*tensor.Tensor](t, 4)
	lock, err := ipc.NewMutex()
	testutil.NoError(t, err)
	defer lock.Close()
	testutil.NoError(t, errors.Join(ipc.Bind(ctx, "jobs", jobs), ipc.Bind(ctx, "lock", lock)))
	defer ipc.Unlink("jobs")
	defer ipc.Unlink("lock")
	x, err := tensor.NewShared(tensor.Float32, 1<<10)
	testutil.NoError(t, err)
	testutil.NoError(t, jobs.Put(ctx, x.Give()))
	until := func(want map[string]int64) {
		t.Helper()
		testutil.EventuallyNoError(t, func() error {
			c, wrong := collect(t, reader), ""
			for name, v := range want {
				if now, ok := c.points[name]; !ok || now != v {
					wrong += fmt.Sprintf("%s is %d, want %d\n", name, now, v)
				}
			}
			if wrong != "" {
				return fmt.Errorf("%s in %v", wrong, c.points)
			}
			return nil
		})
	}
	until(map[string]int64{"shoal.queue.depth{queue=jobs}": 1, "shoal.queue.capacity{queue=jobs}": 4,
		"shoal.queue.puts{queue=jobs}": 1, "shoal.processes{state=live}": 1,
		"shoal.lock.held{kind=mutex,lock=lock}": 0})

	g := shoal.NewGroup(ctx, shoal.Options{})
	defer g.Close()
	p := hold.Go(g, holding{jobs.Receiver(), lock})
	until(map[string]int64{"shoal.queue.depth{queue=jobs}": 0, "shoal.queue.gets{queue=jobs}": 1,
		"shoal.queue.waiting{end=receive,queue=jobs}": 1, "shoal.lock.held{kind=mutex,lock=lock}": 1,
		"shoal.processes{state=live}": 2})
	c := collect(t, reader)
	for _, name := range []string{"shoal.memory.held{pid=" + strconv.Itoa(os.Getpid()) + "}", "shoal.memory.limit{}",
		"shoal.memory.used{}", "shoal.memory.committed{}", "shoal.allocations{}", "shoal.blocks{kind=ring}"} {
		if c.points[name] <= 0 {
			t.Errorf("%s is %d", name, c.points[name])
		}
	}
	for _, f := range figures.All() {
		m, ok := c.told["shoal."+f.Name]
		counter := ok && m.Data.(metricdata.Sum[int64]).IsMonotonic
		if !ok || m.Unit != f.Unit || m.Description != f.Help || counter != f.Counter {
			t.Errorf("%s: %+v", f.Name, m)
		}
	}
	testutil.NoError(t, p.Signal(os.Kill))
	g.Wait()
	until(map[string]int64{"shoal.processes{state=live}": 1, "shoal.processes_reaped{}": 1,
		"shoal.lock.held{kind=mutex,lock=lock}": 0})

	testutil.NoError(t, registration.Unregister())
	if c := collect(t, reader); len(c.points) != 0 {
		t.Errorf("%d points after Unregister", len(c.points))
	}
}

// Without a provider of the program's own, that of package otel does nothing.
func TestObserveWithoutAProvider(t *testing.T) {
	registration, err := shoalotel.Observe(nil)
	testutil.NoError(t, err)
	testutil.NoError(t, registration.Unregister())
}

// A name that is a part of another's would be hidden by it in systems that show names as a tree.
func TestNoFigureIsNamedAsAGroupIs(t *testing.T) {
	for _, f := range figures.All() {
		for _, other := range figures.All() {
			if strings.HasPrefix(other.Name, f.Name+".") {
				t.Errorf("%s and %s", f.Name, other.Name)
			}
		}
	}
}
