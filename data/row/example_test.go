package row_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/jsonl"
	"github.com/shoal-mp/shoal/data/row"
	"github.com/shoal-mp/shoal/tensor"
)

// The numbers of a column get its dtype, even in rows without a fraction.
func ExampleColumn() {
	path, remove := writeLines(`{"text": "a", "weights": [1, 2]}`)
	defer remove()
	columns := []row.Column{{Name: "weights", DType: new(tensor.Float64)}}
	train, err := jsonl.Open(jsonl.Options{Columns: columns}, path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer train.Close()
	fmt.Println(data.Value(context.Background(), train, 0))
	// Output: map[weights:tensor([1., 2.], dtype=torch.float64)] <nil>
}

// An error names the line that cannot be converted to a sample.
func ExampleError() {
	path, remove := writeLines(`{"id": 1}`, `{"id": "two"}`)
	defer remove()
	columns := []row.Column{{Name: "id", DType: new(tensor.Int64)}}
	train, err := jsonl.Open(jsonl.Options{Columns: columns}, path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer train.Close()
	_, err = data.Value(context.Background(), train, 1)
	if bad, ok := errors.AsType[*row.Error](err); ok {
		fmt.Println(filepath.Base(bad.Path), bad.Unit, bad.Number)
	}
	// Output: train.jsonl line 2
}

// writeLines returns the path of a file with the given lines.
func writeLines(lines ...string) (path string, remove func()) {
	dir, err := os.MkdirTemp("", "row")
	if err != nil {
		panic(err)
	}
	path = filepath.Join(dir, "train.jsonl")
	var text []byte
	for _, line := range lines {
		text = append(append(text, line...), '\n')
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		panic(err)
	}
	return path, func() { os.RemoveAll(dir) }
}
