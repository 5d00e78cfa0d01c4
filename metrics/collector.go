package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/shoal-mp/shoal/internal/figures"
)

// A Collector is a [prometheus.Collector] that reads the metrics of this process's domain at
// each scrape. [NewCollector] makes it. It may be used from several goroutines.
type Collector struct{}

// NewCollector returns a Collector for a [prometheus.Registerer]. A registry must not contain
// more than one: registering a second one fails.
func NewCollector() *Collector { return &Collector{} }

// Handler returns a handler that serves the metrics of this process's domain, and no others,
// from a registry of its own.
func Handler() http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(NewCollector())
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}

// descriptions maps each figure to its Prometheus description.
var descriptions = describe()

func describe() map[*figures.Figure]*prometheus.Desc {
	all := make(map[*figures.Figure]*prometheus.Desc)
	for _, f := range figures.All() {
		all[f] = prometheus.NewDesc(f.Prometheus(), f.Help, f.Labels, nil)
	}
	return all
}

// Describe implements [prometheus.Collector]: it sends the description of each metric to out.
func (*Collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range descriptions {
		out <- d
	}
}

// Collect implements [prometheus.Collector]. It reads the current state of the shared memory and
// sends one sample per metric and set of labels to out.
func (*Collector) Collect(out chan<- prometheus.Metric) {
	figures.Read(func(f *figures.Figure, v int64, labels ...string) {
		kind := prometheus.GaugeValue
		if f.Counter {
			kind = prometheus.CounterValue
		}
		out <- prometheus.MustNewConstMetric(descriptions[f], kind, float64(v), labels...)
	})
}
