package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/shoal-mp/shoal/internal/figures"
)

// A Collector collects the metrics of this process's domain at each scrape. It may be used from
// several goroutines.
type Collector struct{}

// NewCollector returns a Collector for a [prometheus.Registerer]. A registry must not contain more
// than one.
func NewCollector() *Collector { return &Collector{} }

// Handler returns a handler that serves only the metrics of this package.
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

// Describe implements [prometheus.Collector].
func (*Collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range descriptions {
		out <- d
	}
}

// Collect implements [prometheus.Collector]. It reads the current state of the shared memory.
func (*Collector) Collect(out chan<- prometheus.Metric) {
	figures.Read(func(f *figures.Figure, v int64, labels ...string) {
		kind := prometheus.GaugeValue
		if f.Counter {
			kind = prometheus.CounterValue
		}
		out <- prometheus.MustNewConstMetric(descriptions[f], kind, float64(v), labels...)
	})
}
