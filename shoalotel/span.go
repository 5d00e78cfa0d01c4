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

// scope names this package to OpenTelemetry.
const scope = "github.com/shoal-mp/shoal/shoalotel"

// tracer asks the provider each time, since a program may set one after this package has begun.
func tracer() trace.Tracer {
	return otel.GetTracerProvider().Tracer(scope, schema)
}

// What spans begin with is made once, since a queue may have a million messages a second.
var (
	schema  = trace.WithSchemaURL(semconv.SchemaURL)
	sending = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
		semconv.MessagingSystemKey.String("shoal"), semconv.MessagingOperationName("put"),
		semconv.MessagingOperationTypeSend)}
	receiving = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		semconv.MessagingSystemKey.String("shoal"), semconv.MessagingOperationName("get"),
		semconv.MessagingOperationTypeReceive)}
)

// Attributes returns what tells this process from the others of the program: the function, the
// rank and the number that package shoallog adds to records. They are for the resource of the
// process's provider.
//
//	resource.NewWithAttributes("", append(shoalotel.Attributes(), semconv.ServiceName("train"))...)
//
// A warm worker has another function and rank before its job is known.
func Attributes() []attribute.KeyValue {
	i := shoal.Current()
	return []attribute.KeyValue{attribute.String("shoal.function", i.Name), attribute.Int("shoal.rank", i.Rank),
		semconv.ProcessPID(i.PID)}
}

// NewShared is [tensor.NewShared] within a span "allocate".
func NewShared(ctx context.Context, dt tensor.DType, shape ...int) (*tensor.Tensor, error) {
	_, span := tracer().Start(ctx, "allocate")
	defer span.End()
	if span.IsRecording() {
		span.SetAttributes(attribute.String("shoal.dtype", dt.String()), attribute.IntSlice("shoal.shape", shape))
	}
	t, err := tensor.NewShared(dt, shape...)
	failed(span, err)
	return t, err
}

// Put puts v into q within a span "put" of the kind producer. The message carries the context of
// that span. q is an [ipc.Queue], an [ipc.Sender] or anything else with such a method Put. The
// error is that of q.
func Put[T any](ctx context.Context, q interface {
	Put(context.Context, Traced[T]) error
}, v T) error {
	ctx, span := tracer().Start(ctx, "put", sending...)
	defer span.End()
	typed[T](span)
	err := q.Put(ctx, NewTraced(ctx, v))
	failed(span, err)
	return err
}

// Get takes a value from q. q is an [ipc.Queue], an [ipc.Receiver] or anything else with such a
// method Get. The error is that of q.
//
// The span "get" is of the kind consumer, and lasts as long as Get. It is a child of the sender's
// span, and has a link to the span of ctx. Where the message has no trace context, it is a child of
// the span of ctx. The context that Get returns is ctx with the span "get": what is done with the
// value is done with this context. After an error it is ctx.
//
// A Get that took nothing has no span, because nothing was on its way.
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
	typed[T](span)
	if err != nil {
		failed(span, err)
		return ctx, t.Value, err
	}
	return sent, t.Value, nil
}

// tookNothing says whether a Get with this error has left all messages where they were.
func tookNothing(err error) bool {
	return errors.Is(err, ipc.ErrClosed) || errors.Is(err, ipc.ErrEmpty) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Close closes c, such as a tensor, within a span "release".
func Close(ctx context.Context, c io.Closer) error {
	_, span := tracer().Start(ctx, "release")
	defer span.End()
	err := c.Close()
	failed(span, err)
	return err
}

// typed notes the type of a message's value.
func typed[T any](span trace.Span) {
	if span.IsRecording() {
		span.SetAttributes(attribute.String("shoal.type", reflect.TypeFor[T]().String()))
	}
}

// failed notes an error, if it is one.
func failed(span trace.Span, err error) {
	if err != nil {
		span.SetAttributes(semconv.ErrorType(err))
		span.SetStatus(codes.Error, err.Error())
	}
}
