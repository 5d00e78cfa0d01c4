package trace_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/shoal-mp/shoal/trace"
)

func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "run.json")
	t, err := trace.Create(path)
	if err != nil {
		panic(err)
	}
	train := t.Track("train")
	for range 2 {
		begin := train.Now()
		// … a step …
		train.Span("step", begin, train.Now())
	}
	if err := t.Close(); err != nil {
		panic(err)
	}

	text, err := os.ReadFile(path) // for https://ui.perfetto.dev
	if err != nil {
		panic(err)
	}
	var events []struct{ Name, Ph string }
	if err := json.Unmarshal(text, &events); err != nil {
		panic(err)
	}
	for _, e := range events[1:] {
		fmt.Println(e.Ph, e.Name)
	}
	// Output:
	// M thread_name
	// X step
	// X step
}

// A nil Trace records nothing, so a program needs no condition around its spans.
func ExampleTrace() {
	var t *trace.Trace // or the result of trace.Create
	train := t.Track("train")
	begin := train.Now()
	train.Span("step", begin, train.Now())
	fmt.Println(t.Close())
	// Output: <nil>
}
