// Package shoalotel exports a program's use of shared memory to OpenTelemetry: spans for the path
// of each value between processes, and metrics of the domain.
//
//	q, err := ipc.NewQueue[shoalotel.Traced[string]](8)
//	if err != nil {
//		return err
//	}
//	defer q.Close()
//	if err := shoalotel.Put(ctx, q, "hello"); err != nil { // span "put"
//		return err
//	}
//	ctx, v, err := shoalotel.Get(ctx, q) // span "get", a child of "put"
//	if err != nil {
//		return err
//	}
//	ctx, span := otel.Tracer("consumer").Start(ctx, "step") // a child of "get"
//	defer span.End()
//	slog.InfoContext(ctx, v)
//
// Start with [Put], [Get] and [Observe].
//
// [NewShared] and [Close] add spans for the allocation and the release of a tensor.
//
// The message carries the trace context beside the value, so the spans of all processes form one
// trace. An invalid trace context does not make the value unreadable: the receiver starts a new
// trace.
//
// The package uses the global providers and propagator of package otel. If the program has set no
// propagator, messages carry the W3C trace context. Each process must set its own provider, because
// processes do not share Go memory:
//
//	func main() {
//		otel.SetTracerProvider(provider()) // runs in every worker as well
//		shoal.Main(run)
//	}
//
// A worker exits when its function returns. The function must call the provider's Shutdown before,
// unless the provider has a syncer, which exports each span when it ends.
//
// [Observe] registers the figures of package metrics. A Prometheus exporter translates their names
// to the names in package metrics.
//
// The trap: a killed process loses its unexported spans. The spans of other processes may then
// refer to a missing parent.
package shoalotel
