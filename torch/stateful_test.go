package torch

import (
	"context"
	"io"
	"iter"
	"reflect"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/tensor"
)

// counting is a stream of 0 to 6 and the worker's epoch. Its fourth sample is an error.
func counting(ctx context.Context, _ Worker) iter.Seq2[data.Sample, error] {
	return func(yield func(data.Sample, error) bool) {
		info, _ := data.WorkerInfo(ctx)
		for i := range 7 {
			if i == 3 {
				if !yield(nil, io.ErrUnexpectedEOF) {
					return
				}
				continue
			}
			epoch := tensor.Scalar(tensor.Int64, float64(info.Epoch))
			if !yield(data.Sample{tensor.Scalar(tensor.Int64, float64(i)), epoch}, nil) {
				return
			}
		}
	}
}

// streamState returns the state of worker 0 of a stream.
func streamState(own any) *python.Dict {
	return python.NewDict(stateWorker, int64(0), stateDataset, nil,
		stateFetcher, python.NewDict(stateIter, own, stateEnded, false))
}

// datasetState returns the state of worker 0 of a map-style data set.
func datasetState(own any) *python.Dict {
	return python.NewDict(stateWorker, int64(0), stateFetcher, nil, stateDataset, own)
}

// fetcherOf returns a fetcher's part of a state, as plainDict converts it.
func fetcherOf(own map[string]any, ended bool) map[string]any {
	return map[string]any{stateIter: own, stateEnded: ended}
}

var statefulChild = Child{
	Datasets: map[string]OpenDataset{"set": func(context.Context, Worker) (data.Dataset, error) {
		return data.NewTensorDataset(tensor.FromSlice([]int64{10, 11, 12, 13, 14, 15}, 6)), nil
	}},
	Streams: map[string]OpenStream{"set": counting},
}

// startStateful starts a worker of a StatefulDataLoader with a state, and returns its
// acknowledgement.
func startStateful(t *testing.T, kind, id, workers int64, state any) (*script, map[string]any) {
	t.Helper()
	s := startLoop(t, statefulChild, kind, id, workers, false, nil, state)
	return s, s.ack(newInstance(ackStartup, python.NewDict(stateWorker, id, "initial_state", nil, "is_delta", false)))
}

// ack sends a message that is no request for a batch.
func (s *script) ack(message any) map[string]any {
	s.t.Helper()
	r, ok := s.say(message).(*python.Record)
	if !ok || r.Class != ackStartup {
		s.t.Fatalf("acknowledged with %v", r)
	}
	return plainDict(r.State)
}

// next requests a batch. It returns the answer without its number.
func (s *script) next(snapshot bool, samples ...int) (batch any, delta any) {
	s.t.Helper()
	answer, ok := s.say(python.Tuple{0, python.Tuple{samples, snapshot}}).(python.Tuple)
	if !ok || len(answer) != 3 {
		s.t.Fatalf("answer has %v", answer)
	}
	if d, ok := answer[2].(*python.Dict); ok {
		return answer[0], plainDict(d)
	}
	return answer[0], answer[2]
}

// plainDict converts a dict to a map, with dicts in it. The single elements of tuples are their
// keys, and the class of an object is its value.
func plainDict(v any) map[string]any {
	m := map[string]any{}
	for k, v := range v.(*python.Dict).All() {
		name, _ := k.(string)
		if t, ok := k.(python.Tuple); ok && len(t) == 1 {
			name = "(" + t[0].(string) + ")"
		}
		switch x := v.(type) {
		case *python.Dict:
			v = plainDict(x)
		case *python.Record:
			if x.Class == tombstone {
				v = x.Class.Name
			}
		}
		m[name] = v
	}
	return m
}

// A map-style data set has no position. Its state is sent when the DataLoader asks for it.
func TestStateful_DatasetsHaveTheirWorkers(t *testing.T) {
	s, ack := startStateful(t, 0, 1, 2, nil)
	own := map[string]any{ownEpoch: int64(0), ownWorkers: int64(2)}
	want := map[string]any{stateWorker: int64(1), stateFetcher: nil, stateDataset: own}
	if !reflect.DeepEqual(ack, map[string]any{stateWorker: int64(1), "initial_state": want, "is_delta": false}) {
		t.Errorf("acknowledged %v", ack)
	}
	batch, delta := s.next(false, 4, 2)
	if got := s.fields(batch); !reflect.DeepEqual(got, [][]float64{{14, 12}}) || delta != nil {
		t.Errorf("batch %v with state %v", got, delta)
	}
	batch, delta = s.next(true, 0)
	want[stateDataset] = map[string]any{}
	if CloseAll(batch); !reflect.DeepEqual(delta, want) {
		t.Errorf("delta %v", delta)
	}
	batch, delta = s.next(true, 17)
	if text := s.failure(batch); !strings.Contains(text, "17") || delta != nil {
		t.Errorf("error %q with state %v", text, delta)
	}
	own[ownEpoch], want[stateDataset] = int64(1), own
	if ack := s.ack(newInstance(resumeIteration, python.NewDict("seed", nil))); !reflect.DeepEqual(
		ack["initial_state"], want) {
		t.Errorf("second epoch with %v", ack)
	}
	s.bye()
}

// A stream continues after the samples that were taken from it, those of a failed batch among them.
func TestStateful_StreamsContinue(t *testing.T) {
	s, _ := startStateful(t, kindStream, 0, 1, nil)
	s.ack(newInstance(resumeIteration, python.NewDict("seed", nil)))
	batch, _ := s.next(true, 0, 0)
	CloseAll(batch)
	batch, delta := s.next(true, 0, 0) // sample 2, and the error
	if text := s.failure(batch); !strings.Contains(text, "unexpected EOF") || delta != nil {
		t.Fatalf("error %q with state %v", text, delta)
	}
	batch, delta = s.next(true, 0)
	if got := s.fields(batch); !reflect.DeepEqual(got, [][]float64{{4}, {1}}) {
		t.Errorf("after the error: %v", got)
	}
	fetcher := delta.(map[string]any)[stateFetcher]
	if want := fetcherOf(map[string]any{"(samples)": int64(5)}, false); !reflect.DeepEqual(fetcher, want) {
		t.Errorf("delta %v, want %v", fetcher, want)
	}
	s.bye()

	own := python.NewDict(ownSamples, int64(5), ownEpoch, int64(1), ownWorkers, int64(1))
	s, ack := startStateful(t, kindStream, 0, 1, streamState(own))
	want := map[string]any{stateWorker: int64(0), stateFetcher: fetcherOf(map[string]any{}, false)}
	if !reflect.DeepEqual(ack["initial_state"], want) || ack["is_delta"] != true {
		t.Errorf("acknowledged %v", ack)
	}
	batch, delta = s.next(false, 0, 0, 0)
	if got := s.fields(batch); !reflect.DeepEqual(got, [][]float64{{5, 6}, {1, 1}}) || delta != nil {
		t.Errorf("resumed with %v and state %v", got, delta)
	}
	batch, delta = s.next(false, 0, 0, 0)
	if r, ok := batch.(*python.Record); !ok || r.Class != endOfStream {
		t.Errorf("the end is %v", batch)
	}
	want[stateFetcher] = fetcherOf(map[string]any{"(samples)": int64(7)}, true)
	if !reflect.DeepEqual(delta, want) {
		t.Errorf("state at the end %v, want %v", delta, want)
	}
	s.ack(newInstance(resumeIteration, python.NewDict("seed", nil)))
	batch, _ = s.next(false, 0)
	if got := s.fields(batch); !reflect.DeepEqual(got, [][]float64{{0}, {2}}) {
		t.Errorf("the next epoch starts with %v", got)
	}
	s.bye()
}

// A state of Python workers without a state of the data set has None in place of the worker's own
// part, which the delta must remove.
func TestStateful_StatesOfPythonWorkers(t *testing.T) {
	for kind, state := range map[int64]*python.Dict{
		0: datasetState(nil), kindStream: streamState(nil),
	} {
		s, ack := startStateful(t, kind, 0, 1, state)
		own := map[string]any{"": tombstone.Name, "(epoch)": int64(0), "(workers)": int64(1)}
		want := map[string]any{stateWorker: int64(0), stateFetcher: nil, stateDataset: own}
		if kind == kindStream {
			own["(samples)"] = int64(0)
			want = map[string]any{stateWorker: int64(0), stateFetcher: fetcherOf(own, false)}
		}
		if !reflect.DeepEqual(ack["initial_state"], want) || ack["is_delta"] != true {
			t.Errorf("acknowledged %v, want %v", ack, want)
		}
		s.bye()
	}
}

// A state that a worker cannot continue from is refused in the acknowledgement.
func TestStateful_RefusesOtherStates(t *testing.T) {
	own := func(workers int64, samples any) *python.Dict {
		return python.NewDict(ownEpoch, int64(0), ownWorkers, workers, ownSamples, samples)
	}
	foreign := python.NewDict("position", int64(3))
	for want, c := range map[string]struct {
		kind  int64
		state any
	}{
		"num_workers=3, and this StatefulDataLoader has 2":       {0, datasetState(own(3, nil))},
		"or shoal.DataLoader":                                    {kindStream, streamState(own(1, int64(0)))},
		"samples in the state of the DataLoader worker is -1":    {kindStream, streamState(own(2, int64(-1)))},
		"samples in the state of the DataLoader worker is <nil>": {kindStream, streamState(own(2, nil))},
		"stream has 7 samples, want at least 8":                  {kindStream, streamState(own(2, int64(8)))},
		"own state_dict in Python":                               {0, datasetState(foreign)},
		"load it with Python":                                    {kindStream, datasetState(foreign)},
		"is []interface {}, want":                                {0, []any{}},
	} {
		s, ack := startStateful(t, c.kind, 0, 2, c.state)
		if text := s.failure(ack["initial_state"]); !strings.Contains(text, want) {
			t.Errorf("%q does not contain %q", text, want)
		}
		s.bye()
	}
}
