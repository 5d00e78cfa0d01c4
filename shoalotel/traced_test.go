package shoalotel_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/shm"
	"github.com/shoal-mp/shoal/shoalotel"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestMain(m *testing.M) { shoaltest.TestMain(m) }

const patience = time.Minute // far beyond what anything here takes

// A seen is a span as a process has exported it.
type seen struct {
	Name, Trace, Span, Parent string
	Remote                    bool // the parent is of another process
	Kind                      string
	Links                     []string // the spans
	Status                    string
	Function                  string // of the process
	Rank, PID                 int
}

// export lets this process export its spans to what it returns.
func export(options ...sdktrace.TracerProviderOption) *tracetest.InMemoryExporter {
	e := tracetest.NewInMemoryExporter()
	options = append(options, sdktrace.WithSyncer(e),
		sdktrace.WithResource(resource.NewWithAttributes("", shoalotel.Attributes()...)))
	otel.SetTracerProvider(sdktrace.NewTracerProvider(options...))
	return e
}

// exporting is export for a test.
func exporting(t *testing.T, options ...sdktrace.TracerProviderOption) *tracetest.InMemoryExporter {
	t.Cleanup(func() { otel.SetTracerProvider(noop.NewTracerProvider()) })
	return export(options...)
}

func spans(e *tracetest.InMemoryExporter) (all []seen) {
	for _, s := range e.GetSpans() {
		one := seen{Name: s.Name, Trace: s.SpanContext.TraceID().String(), Span: s.SpanContext.SpanID().String(),
			Parent: s.Parent.SpanID().String(), Remote: s.Parent.IsRemote(), Kind: s.SpanKind.String(),
			Status: s.Status.Description}
		for _, l := range s.Links {
			one.Links = append(one.Links, l.SpanContext.SpanID().String())
		}
		function, _ := s.Resource.Set().Value("shoal.function")
		rank, _ := s.Resource.Set().Value("shoal.rank")
		pid, _ := s.Resource.Set().Value("process.pid")
		one.Function, one.Rank, one.PID = function.AsString(), int(rank.AsInt64()), int(pid.AsInt64())
		all = append(all, one)
	}
	return all
}

// named returns the spans of a name.
func named(all []seen, name string) (some []seen) {
	for _, s := range all {
		if s.Name == name {
			some = append(some, s)
		}
	}
	return some
}

// only returns the one span of a name.
func only(t *testing.T, all []seen, name string) seen {
	t.Helper()
	some := named(all, name)
	if len(some) != 1 {
		t.Fatalf("%d spans %q in %+v", len(some), name, all)
	}
	return some[0]
}

func queue[T any](t *testing.T, capacity int) *ipc.Queue[T] {
	t.Helper()
	q, err := ipc.NewQueue[T](capacity)
	testutil.NoError(t, err)
	t.Cleanup(func() { q.Close() })
	return q
}

// A job is what a consumer gets.
type job struct {
	Tensors *ipc.Receiver[shoalotel.Traced[*tensor.Tensor]]
	Told    *ipc.Sender[report]
	Linger  bool // after the first value, until the process is killed
}

// A report is what a consumer has seen so far.
type report struct {
	Sum   float64
	Spans []seen
}

// consume is traced by its argument, and gets what is traced by the messages.
var consume = shoal.Register("consume", func(ctx context.Context, _ int, arg shoalotel.Traced[job]) error {
	e, j := export(), arg.Value
	tracer := otel.Tracer("test")
	ctx, whole := tracer.Start(arg.Context(ctx), "consume")
	defer whole.End()
	for {
		value, x, err := shoalotel.Get(ctx, j.Tensors)
		if errors.Is(err, ipc.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		var sum float64
		_, step := tracer.Start(value, "step")
		for _, v := range tensor.Data[float32](x) {
			sum += float64(v)
		}
		step.End()
		if j.Linger { // and is killed with the tensor
			if err := j.Told.Put(ctx, report{sum, spans(e)}); err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		}
		if err := shoalotel.Close(value, x); err != nil {
			return err
		}
		if err := j.Told.Put(ctx, report{sum, spans(e)}); err != nil {
			return err
		}
		e.Reset()
	}
})

// send makes a tensor of ones and puts it, within a span.
func send(ctx context.Context, q *ipc.Queue[shoalotel.Traced[*tensor.Tensor]], n int) error {
	ctx, span := otel.Tracer("test").Start(ctx, "produce")
	defer span.End()
	x, err := shoalotel.NewShared(ctx, tensor.Float32, n)
	if err != nil {
		return err
	}
	defer x.Close()
	for i := range tensor.Data[float32](x) {
		tensor.Data[float32](x)[i] = 1
	}
	return shoalotel.Put(ctx, q, x.Give())
}

func TestOneTraceLeadsThroughTwoProcesses(t *testing.T) {
	shoaltest.NoLeaks(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	e := exporting(t)
	tensors, told := queue[shoalotel.Traced[*tensor.Tensor]](t, 4), queue[report](t, 4)
	main, span := otel.Tracer("test").Start(ctx, "main")
	g := shoal.NewGroup(ctx, shoal.Options{})
	defer g.Close()
	p := consume.Go(g, shoalotel.NewTraced(main, job{Tensors: tensors.Receiver(), Told: told.Sender()}))
	for n := 1; n <= 3; n++ {
		e.Reset()
		testutil.NoError(t, send(ctx, tensors, n)) // not within main: a trace of its own
		r, err := told.Get(ctx)
		testutil.NoError(t, err)
		if r.Sum != float64(n) {
			t.Errorf("the sum of %d ones is %v", n, r.Sum)
		}
		here, there := spans(e), r.Spans
		produce, allocate, put := only(t, here, "produce"), only(t, here, "allocate"), only(t, here, "put")
		get, step, release := only(t, there, "get"), only(t, there, "step"), only(t, there, "release")
		for _, s := range []seen{allocate, put, get, step, release} {
			if s.Trace != produce.Trace {
				t.Errorf("%s is of another trace", s.Name)
			}
		}
		if allocate.Parent != produce.Span || put.Parent != produce.Span || put.Remote {
			t.Errorf("the producer's spans: %+v", here)
		}
		if get.Parent != put.Span || !get.Remote || step.Parent != get.Span || release.Parent != get.Span {
			t.Errorf("put %+v, the consumer's spans %+v", put, there)
		}
		if put.Kind != "producer" || get.Kind != "consumer" || release.Kind != "internal" {
			t.Errorf("kinds %s, %s, %s", put.Kind, get.Kind, release.Kind)
		}
		if len(get.Links) != 1 || get.Links[0] == put.Span {
			t.Errorf("get is linked to %v, and not to the span of its process", get.Links)
		}
		if put.PID != os.Getpid() || put.Function != "main" || get.PID != p.PID() || get.Function != "consume" {
			t.Errorf("put of %s %d, get of %s %d", put.Function, put.PID, get.Function, get.PID)
		}
	}
	if err := tensors.Sender().Finish(); err != nil {
		t.Error(err)
	}
	testutil.NoError(t, g.Wait())
	span.End()
}

func TestTheArgumentOfAWorkerHasItsContext(t *testing.T) {
	shoaltest.NoLeaks(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	e := exporting(t)
	tensors, told := queue[shoalotel.Traced[*tensor.Tensor]](t, 4), queue[report](t, 4)
	main, span := otel.Tracer("test").Start(ctx, "main")
	g := shoal.NewGroup(ctx, shoal.Options{})
	defer g.Close()
	consume.Go(g, shoalotel.NewTraced(main, job{Tensors: tensors.Receiver(), Told: told.Sender()}))
	x, err := tensor.NewShared(tensor.Float32, 2)
	testutil.NoError(t, err)
	testutil.NoError(t, tensors.Put(ctx, shoalotel.Traced[*tensor.Tensor]{Value: x.Give()})) // without a context
	r, err := told.Get(ctx)
	testutil.NoError(t, err)
	testutil.NoError(t, tensors.Sender().Finish())
	testutil.NoError(t, g.Wait())
	span.End()
	root, get := only(t, spans(e), "main"), only(t, r.Spans, "get")
	if get.Trace != root.Trace || get.Remote || len(get.Links) != 0 {
		t.Errorf("main %+v, get %+v: get is not a child of the worker's span, which is of main's trace", root, get)
	}
}

// What is in the queue when a receiver is killed has its own context, and reaches another one.
func TestAReceiverIsKilledInBetween(t *testing.T) {
	shoaltest.NoLeaks(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	e := exporting(t)
	tensors, told := queue[shoalotel.Traced[*tensor.Tensor]](t, 4), queue[report](t, 4)
	testutil.NoError(t, send(ctx, tensors, 1))
	testutil.NoError(t, send(ctx, tensors, 2))
	puts := named(spans(e), "put")
	if len(puts) != 2 || puts[0].Trace == puts[1].Trace {
		t.Fatalf("puts %+v", puts)
	}
	g := shoal.NewGroup(ctx, shoal.Options{})
	defer g.Close()
	consume.Go(g, shoalotel.NewTraced(ctx, job{tensors.Receiver(), told.Sender(), true}))
	first, err := told.Get(ctx)
	testutil.NoError(t, err)
	if get := only(t, first.Spans, "get"); get.Parent != puts[0].Span {
		t.Errorf("the first get is a child of %s, want %s", get.Parent, puts[0].Span)
	}
	pid := first.Spans[0].PID
	victim, err := os.FindProcess(pid)
	testutil.NoError(t, err)
	testutil.NoError(t, victim.Kill())
	var died *shoal.ProcessError
	if err := g.Wait(); !errors.As(err, &died) {
		t.Fatalf("the receiver ended with %v", err)
	}

	again := shoal.NewGroup(ctx, shoal.Options{})
	defer again.Close()
	consume.Go(again, shoalotel.NewTraced(ctx, job{tensors.Receiver(), told.Sender(), false}))
	second, err := told.Get(ctx)
	testutil.NoError(t, err)
	testutil.NoError(t, tensors.Sender().Finish())
	testutil.NoError(t, again.Wait())
	get := only(t, second.Spans, "get")
	if second.Sum != 2 || get.Parent != puts[1].Span || get.Trace != puts[1].Trace || get.PID == pid {
		t.Errorf("sum %v, get %+v, want a child of %+v by another process than %d", second.Sum, get, puts[1], pid)
	}
}

func TestWhatIsNoTraceContextIsLeftOut(t *testing.T) {
	shoaltest.NoLeaks(t)
	e := exporting(t)
	q := queue[shoalotel.Traced[string]](t, 1)
	const right = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for name, c := range map[string]struct {
		carrier map[string]string
		parent  bool
	}{
		"none":    {nil, false},
		"empty":   {map[string]string{}, false},
		"no text": {map[string]string{"traceparent": ""}, false},
		"words":   {map[string]string{"traceparent": "who knows"}, false},
		"short":   {map[string]string{"traceparent": right[:50]}, false},
		"bytes":   {map[string]string{"traceparent": strings.Repeat("\xff", 55)}, false},
		"zeros": {map[string]string{"traceparent": "00-" + strings.Repeat("0", 32) + "-" +
			strings.Repeat("0", 16) + "-01"}, false},
		"no version":       {map[string]string{"traceparent": "ff" + right[2:]}, false},
		"huge":             {map[string]string{"traceparent": strings.Repeat("0", 1<<20)}, false},
		"other names":      {map[string]string{"\x00": "\x00", "b3": "1"}, false},
		"newer version":    {map[string]string{"traceparent": "01" + right[2:] + "-more"}, true},
		"a state no state": {map[string]string{"traceparent": right, "tracestate": "=,=\xff"}, true},
		"right":            {map[string]string{"traceparent": right, "tracestate": "vendor=1"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, caller := range []bool{false, true} {
				e.Reset()
				ctx, here := t.Context(), trace.Span(noop.Span{})
				if caller {
					ctx, here = otel.Tracer("test").Start(ctx, "here")
				}
				testutil.NoError(t, q.Put(ctx, shoalotel.Traced[string]{Carrier: c.carrier, Value: "value"}))
				got, v, err := shoalotel.Get(ctx, q)
				if err != nil || v != "value" {
					t.Fatalf("%q, %v", v, err)
				}
				get := only(t, spans(e), "get")
				if trace.SpanContextFromContext(got).SpanID().String() != get.Span {
					t.Error("the context has another span")
				}
				want := here.SpanContext().SpanID().String()
				if c.parent {
					want = right[36:52]
				}
				if get.Parent != want || get.Remote != c.parent {
					t.Errorf("the parent is %s, want %s", get.Parent, want)
				}
				if linked := len(get.Links) == 1; linked != (c.parent && caller) {
					t.Errorf("links %v", get.Links)
				}
			}
		})
	}
}

func TestErrorsAreTold(t *testing.T) {
	shoaltest.NoLeaks(t)
	e := exporting(t)
	ctx := t.Context()
	q := queue[shoalotel.Traced[int]](t, 1)
	soon, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if _, _, err := shoalotel.Get(soon, q); !errors.Is(err, ipc.ErrEmpty) {
		t.Error(err)
	}
	testutil.NoError(t, q.Sender().Finish())
	if got, _, err := shoalotel.Get(ctx, q); !errors.Is(err, ipc.ErrClosed) || got != ctx {
		t.Error(err)
	}
	if all := spans(e); len(all) != 0 {
		t.Errorf("nothing was got, and there are spans: %+v", all)
	}
	if err := shoalotel.Put(ctx, q, 1); !errors.Is(err, ipc.ErrClosed) {
		t.Error(err)
	}
	if put := only(t, spans(e), "put"); !strings.Contains(put.Status, ipc.ErrClosed.Error()) {
		t.Errorf("%+v", put)
	}
	if x, err := shoalotel.NewShared(ctx, tensor.Float32, 1<<50); !errors.Is(err, shm.ErrTooLarge) || x != nil {
		t.Errorf("a tensor of 4 PiB: %v", err)
	}
	if allocate := only(t, spans(e), "allocate"); allocate.Status == "" {
		t.Errorf("%+v", allocate)
	}
	broken := errors.New("no message")
	if _, _, err := shoalotel.Get(ctx, fake{broken}); err != broken {
		t.Error(err)
	}
	if get := only(t, spans(e), "get"); get.Status != broken.Error() {
		t.Errorf("%+v", get)
	}
	if err := shoalotel.Close(ctx, fake{broken}); err != broken {
		t.Error(err)
	}
	if release := only(t, spans(e), "release"); release.Status != broken.Error() {
		t.Errorf("%+v", release)
	}
	for _, s := range e.GetSpans() {
		typed := slices.ContainsFunc(s.Attributes, func(a attribute.KeyValue) bool { return a.Key == "error.type" })
		if !typed || s.Status.Code != codes.Error {
			t.Errorf("%s: %v, %v", s.Name, s.Status, s.Attributes)
		}
	}
}

// A fake is a queue that fails.
type fake struct{ err error }

func (f fake) Get(context.Context) (shoalotel.Traced[int], error) {
	return shoalotel.Traced[int]{}, f.err
}
func (f fake) Close() error { return f.err }

func TestWithoutAProviderNothingIsCarried(t *testing.T) {
	ctx := t.Context()
	q := queue[shoalotel.Traced[int]](t, 2)
	testutil.NoError(t, shoalotel.Put(ctx, q, 7))
	testutil.NoError(t, shoalotel.Put(ctx, q, 8))
	m, err := q.Get(ctx)
	if err != nil || m.Carrier != nil || m.Value != 7 {
		t.Errorf("%+v, %v", m, err)
	}
	got, v, err := shoalotel.Get(ctx, q)
	if err != nil || v != 8 || trace.SpanContextFromContext(got).IsValid() {
		t.Errorf("%v, %v", v, err)
	}
}

// That a trace is not sampled is part of its context.
func TestWhatIsNotSampledIsNotSampledElsewhere(t *testing.T) {
	e := exporting(t, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample())))
	q := queue[shoalotel.Traced[int]](t, 1)
	testutil.NoError(t, shoalotel.Put(t.Context(), q, 1))
	// Another process may sample what begins there.
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(e)))
	got, _, err := shoalotel.Get(t.Context(), q)
	if c := trace.SpanContextFromContext(got); err != nil || !c.IsValid() || c.IsSampled() {
		t.Errorf("%v, %v", c, err)
	}
	if all := spans(e); len(all) != 0 {
		t.Errorf("%+v", all)
	}
}

func TestThePropagatorOfTheProgramIsUsed(t *testing.T) {
	exporting(t)
	was := otel.GetTextMapPropagator()
	otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator(
		propagation.TraceContext{}, propagation.Baggage{}))
	defer otel.SetTextMapPropagator(was)
	member, err := baggage.NewMember("user", "7")
	testutil.NoError(t, err)
	bag, err := baggage.New(member)
	testutil.NoError(t, err)
	q := queue[shoalotel.Traced[int]](t, 1)
	testutil.NoError(t, shoalotel.Put(baggage.ContextWithBaggage(t.Context(), bag), q, 1))
	got, _, err := shoalotel.Get(t.Context(), q)
	if user := baggage.FromContext(got).Member("user").Value(); err != nil || user != "7" {
		t.Errorf("user %q, %v", user, err)
	}
}

// Other queues than ipc.Queue have the methods as well.
func TestOtherQueuesCarryTraces(t *testing.T) {
	e := exporting(t)
	ctx := t.Context()
	j, err := ipc.NewJoinableQueue[shoalotel.Traced[int]](1)
	testutil.NoError(t, err)
	defer j.Close()
	testutil.NoError(t, shoalotel.Put(ctx, j, 1))
	_, v, err := shoalotel.Get(ctx, j)
	testutil.NoError(t, err)
	testutil.NoError(t, j.TaskDone())
	a, b, err := ipc.Pipe[shoalotel.Traced[int], shoalotel.Traced[int]]()
	testutil.NoError(t, err)
	defer a.Close()
	defer b.Close()
	within, span := otel.Tracer("test").Start(ctx, "letter")
	testutil.NoError(t, a.Send(ctx, shoalotel.NewTraced(within, 2)))
	span.End()
	m, err := b.Recv(ctx)
	testutil.NoError(t, err)
	got := trace.SpanContextFromContext(m.Context(ctx)).SpanID().String()
	if v != 1 || m.Value != 2 || got != only(t, spans(e), "letter").Span {
		t.Errorf("%d, %d, a context of %s", v, m.Value, got)
	}
}

func BenchmarkPutAndGet(b *testing.B) {
	ctx := b.Context()
	bench := func(b *testing.B, step func() error) {
		b.ReportAllocs()
		for b.Loop() {
			if err := step(); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("untraced", func(b *testing.B) {
		q, err := ipc.NewQueue[int](1)
		if err != nil {
			b.Fatal(err)
		}
		defer q.Close()
		bench(b, func() error {
			err := q.Put(ctx, 1)
			_, failed := q.Get(ctx)
			return errors.Join(err, failed)
		})
	})
	q, err := ipc.NewQueue[shoalotel.Traced[int]](1)
	if err != nil {
		b.Fatal(err)
	}
	defer q.Close()
	traced := func() error {
		err := shoalotel.Put(ctx, q, 1)
		_, _, failed := shoalotel.Get(ctx, q)
		return errors.Join(err, failed)
	}
	for _, sampler := range []sdktrace.Sampler{nil, sdktrace.NeverSample(), sdktrace.AlwaysSample()} {
		name := "no provider"
		if sampler != nil {
			name = fmt.Sprint(sampler.Description())
			otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler)))
		}
		b.Run(name, func(b *testing.B) { bench(b, traced) })
		otel.SetTracerProvider(noop.NewTracerProvider())
	}
}
