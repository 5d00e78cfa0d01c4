package shoalotel

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/shoal-mp/shoal/internal/figures"
)

// Observe registers the figures of this process's domain with a provider, or with the global
// provider of package otel if provider is nil. The names are as in package metrics, but with
// dots: shoal.memory.used corresponds to shoal_memory_used_bytes. All processes of a program
// share one domain, so only one should call Observe, usually the root. It may be called before
// the process has a domain: until then the domain's totals are 0. Observe returns an error if
// the provider rejects an instrument or the callback.
//
// The provider's reader determines when the shared memory is read. A reading takes about 5 ms
// with 100,000 blocks. Readings go on until the caller calls Unregister of the returned
// [metric.Registration].
func Observe(provider metric.MeterProvider) (metric.Registration, error) {
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	meter := provider.Meter(scope)
	instruments := make(map[*figures.Figure]metric.Int64Observable)
	var all []metric.Observable
	var failed error
	for _, f := range figures.All() {
		i, err := newInstrument(meter, f)
		failed = errors.Join(failed, err)
		instruments[f] = i
		all = append(all, i)
	}
	if failed != nil {
		return nil, fmt.Errorf("shoalotel: make instruments: %w", failed)
	}
	r, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		figures.Read(func(f *figures.Figure, v int64, labels ...string) {
			attributes := make([]attribute.KeyValue, len(labels))
			for i, label := range labels {
				attributes[i] = attribute.String(f.Labels[i], label)
			}
			o.ObserveInt64(instruments[f], v, metric.WithAttributes(attributes...))
		})
		return nil
	}, all...)
	if err != nil {
		return nil, fmt.Errorf("shoalotel: register the figures: %w", err)
	}
	return r, nil
}

func newInstrument(meter metric.Meter, f *figures.Figure) (metric.Int64Observable, error) {
	name := "shoal." + f.Name
	if f.Counter {
		return meter.Int64ObservableCounter(name, metric.WithDescription(f.Help), metric.WithUnit(f.Unit))
	}
	return meter.Int64ObservableUpDownCounter(name, metric.WithDescription(f.Help), metric.WithUnit(f.Unit))
}
