package torch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/tensor"
)

// valueOf is sample i as value of structured.py makes it.
func valueOf(i int, kind string) (any, error) {
	switch kind {
	case "dict":
		return dictSample{tensor.Full(tensor.Uint8, float64(i), 2, 3), i, float64(i) / 2, i%2 == 0,
			strings.Repeat("ü", i)}, nil
	case "nested":
		boxes := []*tensor.Tensor{tensor.Full(tensor.Float32, float64(i), 4), tensor.Scalar(tensor.Int64, float64(i))}
		meta := python.NewDict("tags", []string{"a", fmt.Sprint(i)}, "raw", []byte{byte(i)})
		return python.NewDict("boxes", boxes, "meta", meta, "at", python.Tuple{i, float64(i) / 4}), nil
	case "tensor":
		return tensor.Full(tensor.Float32, float64(i), 3), nil
	case "text":
		return fmt.Sprint("sample ", i), nil
	case "number":
		return i, nil
	case "ragged":
		return python.NewDict("ids", tensor.Arange(tensor.Int64, 0, float64(i+1), 1), "text", strings.Repeat("x", i)),
			nil
	case "keys":
		if i == 5 {
			return python.NewDict("a", i, "c", i), nil
		}
		return python.NewDict("a", i, "b", i), nil
	case "none":
		return python.NewDict("a", nil), nil
	case "pair":
		if i == 99 {
			return nil, errors.New("no such sample")
		}
		return data.Sample{tensor.Full(tensor.Float32, float64(i), 2), tensor.Scalar(tensor.Int64, float64(i))}, nil
	}
	return nil, fmt.Errorf("there are no samples that are %q", kind)
}

type dictSample struct {
	Image *tensor.Tensor `torch:"image"`
	Label int            `torch:"label"`
	Score float64        `torch:"score"`
	Good  bool           `torch:"good"`
	Name  string         `torch:"name"`
}

// valueSet is Values of structured.py.
type valueSet struct {
	N    int    `torch:"n"`
	Kind string `torch:"kind"`
	More int    `torch:"more"`
}

func (s *valueSet) Len() int { return s.N }

func (s *valueSet) Value(_ context.Context, i int) (any, error) { return valueOf(i+s.More, s.Kind) }

// pairSet is a set of plain samples.
type pairSet struct{ *valueSet }

func (s pairSet) Get(_ context.Context, i int) (data.Sample, error) {
	v, err := valueOf(i, s.Kind)
	if err != nil {
		return nil, err
	}
	return v.(data.Sample), nil
}

func openValues(_ context.Context, w Worker) (data.Dataset, error) {
	s := new(valueSet)
	if err := w.Keywords(s); err != nil {
		return nil, err
	}
	if s.Kind == "pair" {
		return plainOnly{pairSet{s}}, nil
	}
	return data.Structured(s), nil
}

// plainOnly hides that a set has values as well.
type plainOnly struct{ set data.Dataset }

func (p plainOnly) Len() int                                            { return p.set.Len() }
func (p plainOnly) Get(ctx context.Context, i int) (data.Sample, error) { return p.set.Get(ctx, i) }

func openValueStream(_ context.Context, w Worker) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		s := new(valueSet)
		if err := w.Keywords(s); err != nil {
			yield(nil, err)
			return
		}
		for i := w.ID; i < s.N; i += w.Workers {
			if !yield(valueOf(i, s.Kind)) {
				return
			}
		}
	}
}

// padLeft is the collate_fn in_go of structured.py.
func padLeft(_ context.Context, samples []any) (any, error) {
	batch, err := data.DefaultCollate(samples, data.Ragged{"ids": data.Pad{Left: true, Mask: "mask"}})
	if err != nil {
		return nil, err
	}
	m := batch.(map[string]any)
	return python.NewDict("ids", m["ids"], "mask", m["mask"], "text", m["text"]), nil
}

func init() {
	testChild.Datasets["values"] = openValues
	testChild.ValueStreams = map[string]OpenValueStream{"values": openValueStream}
	testChild.Collates = map[string]Collate{"__main__.in_go": padLeft}
}

// TestChild_BatchesOfAnyStructure runs an unmodified script once with Python's workers and once
// with Go's. The batches must be the same, of the same types.
func TestChild_BatchesOfAnyStructure(t *testing.T) {
	eachTorch(t, structured)
}

func structured(t *testing.T, py peerPython) {
	cmd := exec.CommandContext(testContext(t), py.path, "testdata/structured.py")
	cmd.Env = append(pythonEnv(), "SHOAL_TEST_PROGRAM="+os.Args[0])
	var stderr strings.Builder
	// for the workers that the script has left, which notice within seconds
	cmd.Stderr, cmd.WaitDelay = &stderr, time.Minute
	b, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var out struct {
		Cells   int
		Seconds map[string]float64
		Differ  map[string]struct{ Got, Want json.RawMessage }
		Errors  map[string]string
	}
	if err := json.Unmarshal(b[strings.LastIndexByte(strings.TrimSpace(string(b)), '\n')+1:], &out); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	for name, d := range out.Differ {
		t.Errorf("%s: Go's workers: %s\nPython's: %s", name, d.Got, d.Want)
	}
	if out.Cells != 11 {
		t.Errorf("%d of 11 cells were compared", out.Cells)
	}
	t.Logf("seconds: %v", out.Seconds)
	for name, want := range map[string]string{
		"keys":   `sample 5: got keys ["a" "c"], want ["a" "b"] as in the first sample`,
		"none":   `sample 0: field "a": nil cannot be batched`,
		"ragged": `sample 1: field "ids": got shape [2], want [1] as in the first sample`,
		"fails":  "the collate_fn fails in worker 0, after error in Go: load sample 99: no such sample",
		"bad":    `there are no samples that are "unknown"`,
	} {
		if got := out.Errors[name]; !strings.Contains(got, want) ||
			!strings.Contains(got, "in DataLoader worker process 0") {
			t.Errorf("%s: %s, not %s", name, got, want)
		}
	}
}
