package shoalotel_test

import (
	"context"
	"fmt"
	"slices"

	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/shoalotel"
	"github.com/shoal-mp/shoal/tensor"
)

func Example() {
	exporter := tracetest.NewInMemoryExporter() // a program exports to its collector
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	otel.SetTracerProvider(provider)
	defer otel.SetTracerProvider(noop.NewTracerProvider())

	ctx := context.Background()
	q, err := ipc.NewQueue[shoalotel.Traced[*tensor.Tensor]](1)
	if err != nil {
		panic(err)
	}
	defer q.Close()

	// What a producer does.
	x, err := shoalotel.NewShared(ctx, tensor.Float32, 2, 3)
	if err != nil {
		panic(err)
	}
	if err := shoalotel.Put(ctx, q, x.Give()); err != nil {
		panic(err)
	}

	// What a consumer does, in this process or in another.
	ctx, x, err = shoalotel.Get(ctx, q)
	if err != nil {
		panic(err)
	}
	if err := shoalotel.Close(ctx, x); err != nil {
		panic(err)
	}

	spans := exporter.GetSpans()
	put := spans[1].SpanContext
	for _, s := range spans {
		fmt.Println(s.Name, s.SpanKind, s.SpanContext.TraceID() == put.TraceID())
	}
	// Output:
	// allocate internal false
	// put producer true
	// get consumer true
	// release internal true
}

func ExampleNewTraced() {
	otel.SetTracerProvider(sdktrace.NewTracerProvider())
	defer otel.SetTracerProvider(noop.NewTracerProvider())
	a, b, err := ipc.Pipe[shoalotel.Traced[string], shoalotel.Traced[string]]()
	if err != nil {
		panic(err)
	}
	defer a.Close()
	defer b.Close()

	ctx, span := otel.Tracer("example").Start(context.Background(), "ask")
	if err := a.Send(ctx, shoalotel.NewTraced(ctx, "how many?")); err != nil {
		panic(err)
	}
	span.End()

	m, err := b.Recv(context.Background())
	if err != nil {
		panic(err)
	}
	_, answer := otel.Tracer("example").Start(m.Context(context.Background()), "answer")
	defer answer.End()
	fmt.Println(m.Value, answer.SpanContext().TraceID() == span.SpanContext().TraceID())
	// Output: how many? true
}

func ExampleAttributes() {
	r := resource.NewWithAttributes("", shoalotel.Attributes()...)
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithResource(r)))
	defer otel.SetTracerProvider(noop.NewTracerProvider())
	for _, a := range r.Attributes() {
		if a.Key != "process.pid" { // another one in each run
			fmt.Println(a.Key, a.Value.String())
		}
	}
	// Output:
	// shoal.function main
	// shoal.rank 0
}

func ExampleObserve() {
	reader := sdkmetric.NewManualReader() // a program has a periodic one
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	registration, err := shoalotel.Observe(provider)
	if err != nil {
		panic(err)
	}
	defer registration.Unregister()

	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		panic(err)
	}
	metrics := all.ScopeMetrics[0].Metrics
	i := slices.IndexFunc(metrics, func(m metricdata.Metrics) bool { return m.Name == "shoal.memory.limit" })
	fmt.Println(metrics[i].Description, metrics[i].Unit)
	// Output: Budget of shared memory. By
}
