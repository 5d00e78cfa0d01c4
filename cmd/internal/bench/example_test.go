package bench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/shoal-mp/shoal/cmd/internal/bench"
)

// A program reads the rows of a run. With Quick they only show that everything runs; leave it out
// to measure.
func ExampleRun() {
	var out bytes.Buffer
	err := bench.Run(context.Background(),
		bench.Options{Suites: []string{"floors"}, Quick: true, JSON: true, Out: &out})
	if err != nil {
		fmt.Println(err)
		return
	}
	for dec := json.NewDecoder(&out); dec.More(); {
		var r bench.Result
		if err := dec.Decode(&r); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(r.Name, r.Unit, r.Value > 0)
	}
	// Output:
	// line_rtt ns true
	// bare_ring_per_s 1/s true
	// futex_rtt ns true
	// eventfd_rtt ns true
	// cas ns true
	// memcpy_64MiB ns true
	// sum_64MiB ns true
}
