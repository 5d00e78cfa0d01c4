// Package shoalotel hands what a program does with shared memory to OpenTelemetry: the way of each
// value from process to process as spans, and the figures of the domain as metrics.
//
//	q, err := ipc.NewQueue[shoalotel.Traced[*tensor.Tensor]](8)
//
//	// the process that makes tensors
//	x, err := shoalotel.NewShared(ctx, tensor.Float32, 64, 784) // span "allocate"
//	err = shoalotel.Put(ctx, q, x.Give())                       // span "put"
//
//	// the process that uses them
//	ctx, x, err := shoalotel.Get(ctx, q)   // span "get", a child of "put"
//	defer shoalotel.Close(ctx, x)          // span "release", a child of "get"
//	ctx, span := tracer.Start(ctx, "step") // and so are the program's own spans
//
// The trace context travels in the message, beside the value. So the spans of all processes are one
// trace, whoever ran them. What a message carries never makes its value unreadable: a receiver that
// cannot read a trace context begins a trace of its own.
//
// The package uses the providers and the propagator that the program has given to package otel. If
// the program has set no propagator, the message carries W3C's trace context. Each process needs a
// provider of its own, as each has its own memory:
//
//	func main() {
//		otel.SetTracerProvider(provider()) // runs in every worker as well
//		shoal.Main(run)
//	}
//
// A worker ends as soon as its function returns. So the function calls Shutdown of the provider
// before, or the provider has a syncer, which exports each span as it ends.
//
// [Observe] registers the figures of package metrics, with the names that an exporter for
// Prometheus translates to those of package metrics.
//
// The trap: a process that is killed takes the spans along that it has not ended and exported. The
// spans of other processes then name a parent that nobody exported.
package shoalotel
