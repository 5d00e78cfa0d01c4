package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/shoal-mp/shoal/internal/figures"
)

// A Collector collects the metrics of the domain of this process, at each scrape. It is safe for
// several goroutines.
type Collector struct{}

// NewCollector returns a Collector, for a prometheus.Registerer. A registry takes one.
func NewCollector() *Collector { return &Collector{} }

// Handler returns a handler that answers a scrape with the metrics of this package alone.
func Handler() http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(NewCollector())
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}

// descriptions are those of all figures.
var descriptions = describe()

func describe() map[*figures.Figure]*prometheus.Desc {
	all := make(map[*figures.Figure]*prometheus.Desc)
	for _, f := range figures.All() {
		all[f] = prometheus.NewDesc(f.Prometheus(), f.Help, f.Labels, nil)
	}
	return all
}

// Describe sends the descriptions of all metrics.
func (*Collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range descriptions {
		out <- d
	}
}

// Collect sends what the shared memory says now.
func (*Collector) Collect(out chan<- prometheus.Metric) {
	figures.Read(func(f *figures.Figure, v int64, labels ...string) {
		kind := prometheus.GaugeValue
		if f.Counter {
			kind = prometheus.CounterValue
		}
		out <- prometheus.MustNewConstMetric(descriptions[f], kind, float64(v), labels...)
	})
}
