package shoalotel

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
)

// A Traced is a value with the trace context of the process that sends it. It travels wherever the
// value could: through queues and pipes, as the argument of a worker, under a name.
type Traced[T any] struct {
	// Carrier has what the propagator has written, such as "traceparent". It is nil where there is
	// no trace.
	Carrier map[string]string
	Value   T
}

// NewTraced returns v with the trace context of ctx. It is for what [Put] does not cover, such as
// the argument of a worker:
//
//	work.Go(g, shoalotel.NewTraced(ctx, job))
func NewTraced[T any](ctx context.Context, v T) Traced[T] {
	t := Traced[T]{Value: v}
	c := make(propagation.MapCarrier)
	if propagator().Inject(ctx, c); len(c) > 0 {
		t.Carrier = c
	}
	return t
}

// Context returns ctx with the trace context that came with the value: spans that begin with it are
// children of the sender's. Where none came, or none that can be read, it returns ctx.
func (t Traced[T]) Context(ctx context.Context) context.Context {
	if len(t.Carrier) == 0 {
		return ctx
	}
	return propagator().Extract(ctx, propagation.MapCarrier(t.Carrier))
}

// propagator is the program's, or W3C's trace context if the program has set none: without one each
// process would have a trace of its own.
func propagator() propagation.TextMapPropagator {
	if p := otel.GetTextMapPropagator(); len(p.Fields()) > 0 {
		return p
	}
	return propagation.TraceContext{}
}
