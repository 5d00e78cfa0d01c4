package shoalotel

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
)

// A Traced is a value with the trace context of its sender. It can be sent wherever the value
// can: through queues and pipes, as the argument of a worker, under a name. [NewTraced] makes
// it. Its shared memory is the shared memory of Value, which the receiver must close.
type Traced[T any] struct {
	// Carrier contains the fields written by the propagator, such as "traceparent". It is nil
	// without a trace.
	Carrier map[string]string
	Value   T
}

// NewTraced returns v with the trace context of ctx. Use it where [Put] does not apply, for example
// for the argument of a worker:
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

// Context returns ctx with the trace context of the message, so that spans started with it are
// children of the sender's span. It returns ctx unchanged if the message has no valid trace
// context.
func (t Traced[T]) Context(ctx context.Context) context.Context {
	if len(t.Carrier) == 0 {
		return ctx
	}
	return propagator().Extract(ctx, propagation.MapCarrier(t.Carrier))
}

// propagator returns the program's propagator, or the W3C trace context if none is set, because
// otherwise each process would have its own trace.
func propagator() propagation.TextMapPropagator {
	if p := otel.GetTextMapPropagator(); len(p.Fields()) > 0 {
		return p
	}
	return propagation.TraceContext{}
}
