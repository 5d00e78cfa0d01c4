package shoalotel

import (
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

// scope is the instrumentation scope.
const scope = "github.com/shoal-mp/shoal/shoalotel"

// tracer returns the tracer of this package from the global provider. It looks up the provider
// on each call, because a program may set it after this package was initialized.
func tracer() trace.Tracer {
	return otel.GetTracerProvider().Tracer(scope, schema)
}

// Options of spans, allocated once because a queue may transfer a million messages per second.
var (
	schema  = trace.WithSchemaURL(semconv.SchemaURL)
	sending = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
		semconv.MessagingSystemKey.String("shoal"), semconv.MessagingOperationName("put"),
		semconv.MessagingOperationTypeSend)}
	receiving = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		semconv.MessagingSystemKey.String("shoal"), semconv.MessagingOperationName("get"),
		semconv.MessagingOperationTypeReceive)}
)

// Attributes returns the function, rank and PID of this process, as package shoallog adds them to
// records. They should be part of the resource of the process's provider:
//
//	resource.NewWithAttributes("", append(shoalotel.Attributes(), semconv.ServiceName("train"))...)
//
// A worker that starts before its job is known has another function and rank until then.
func Attributes() []attribute.KeyValue {
	i := shoal.Current()
	return []attribute.KeyValue{attribute.String("shoal.function", i.Name), attribute.Int("shoal.rank", i.Rank),
		semconv.ProcessPID(i.PID)}
}

// NewShared calls [tensor.NewShared] within a span "allocate". The span ends before NewShared
// returns, and records the error. The caller must close the tensor. The errors are the same as
// for tensor.NewShared.
func NewShared(ctx context.Context, dt tensor.DType, shape ...int) (*tensor.Tensor, error) {
	_, span := tracer().Start(ctx, "allocate")
	defer span.End()
	if span.IsRecording() {
		span.SetAttributes(attribute.String("shoal.dtype", dt.String()), attribute.IntSlice("shoal.shape", shape))
	}
	t, err := tensor.NewShared(dt, shape...)
	recordError(span, err)
	return t, err
}

// Put puts v into q within a producer span "put". The message carries the context of that span.
// The caller must still close v. q may be an [ipc.Queue], an [ipc.Sender] or anything else with
// this Put method. It returns the error of q.
func Put[T any](ctx context.Context, q interface {
	Put(context.Context, Traced[T]) error
}, v T) error {
	ctx, span := tracer().Start(ctx, "put", sending...)
	defer span.End()
	setTypeAttribute[T](span)
	err := q.Put(ctx, NewTraced(ctx, v))
	recordError(span, err)
	return err
}

// Get takes a value from q. q may be an [ipc.Queue], an [ipc.Receiver] or anything else with
// this Get method. It returns the value, or the error of q. The caller must close the value's
// shared memory.
//
// The consumer span "get" covers the call. It is a child of the sender's span with a link to the
// span of ctx; if the message has no trace context, it is a child of the span of ctx. Get
// returns ctx with the span "get", which should be used for work on the value. If err is not
// nil, it returns ctx unchanged.
//
// A Get that took no message records no span.
func Get[T any](ctx context.Context, q interface {
	Get(context.Context) (Traced[T], error)
}) (context.Context, T, error) {
	begin := time.Now()
	t, err := q.Get(ctx)
	if tookNothing(err) {
		return ctx, t.Value, err
	}
	sent := t.Context(ctx)
	options := append(slices.Clip(receiving), trace.WithTimestamp(begin))
	here := trace.SpanContextFromContext(ctx)
	if here.IsValid() && !here.Equal(trace.SpanContextFromContext(sent)) {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: here}))
	}
	sent, span := tracer().Start(sent, "get", options...)
	defer span.End()
	setTypeAttribute[T](span)
	if err != nil {
		recordError(span, err)
		return ctx, t.Value, err
	}
	return sent, t.Value, nil
}

// tookNothing reports whether err is an error of a Get that left all messages in the queue,
// because none arrived. It is false for nil and for a message that could not be decoded.
func tookNothing(err error) bool {
	return errors.Is(err, ipc.ErrClosed) || errors.Is(err, ipc.ErrEmpty) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Close closes c, such as a tensor, within a span "release". It returns the error of c.
func Close(ctx context.Context, c io.Closer) error {
	_, span := tracer().Start(ctx, "release")
	defer span.End()
	err := c.Close()
	recordError(span, err)
	return err
}

// setTypeAttribute records T, the type of a message's value, as an attribute of the span.
func setTypeAttribute[T any](span trace.Span) {
	if span.IsRecording() {
		span.SetAttributes(attribute.String("shoal.type", reflect.TypeFor[T]().String()))
	}
}

// recordError records err in the span, as its status and the attribute error.type. It does
// nothing if err is nil.
func recordError(span trace.Span, err error) {
	if err != nil {
		span.SetAttributes(semconv.ErrorType(err))
		span.SetStatus(codes.Error, err.Error())
	}
}
