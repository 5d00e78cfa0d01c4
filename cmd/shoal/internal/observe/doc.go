// Package observe is the benchmark suite observe of shoal bench. It measures the cost of observing
// a program with 64 processes and 100,000 blocks once a second, as shoal top, shoal watch and a
// Prometheus scrape with package metrics do.
//
// The observed program is also the one that measures, so its figures include both sides of an
// observation.
package observe
