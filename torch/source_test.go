package torch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/tensor"
)

// object is an object of Python's.
func object(class string, attributes ...any) *python.Record {
	return &python.Record{Class: named(class), State: python.NewDict(attributes...)}
}

// counted is numbers from First on. It counts how often it was opened and closed.
type counted struct {
	first, n       int
	opened, closed *int
}

func (d counted) Len() int { return d.n }

func (d counted) Get(_ context.Context, i int) (data.Sample, error) {
	if i < 0 || i >= d.n {
		return nil, fmt.Errorf("sample %d of %d", i, d.n)
	}
	return data.Sample{tensor.Scalar(tensor.Int64, float64(d.first+i))}, nil
}

func (d counted) Open(context.Context) (any, error) { *d.opened++; return d, nil }

func (d counted) Close() error { *d.closed++; return nil }

// opening is a source of a program that has the data set "counted", and counts its openings.
func opening(t *testing.T) (s *source, opened, closed *int) {
	t.Helper()
	opened, closed = new(int), new(int)
	open := func(_ context.Context, w Worker) (data.Dataset, error) {
		args := struct {
			First int `torch:"first"`
			N     int `torch:"n"`
		}{N: 10}
		if err := w.Keywords(&args); err != nil {
			return nil, err
		}
		return counted{args.First, args.N, opened, closed}, nil
	}
	child := Child{Datasets: map[string]OpenDataset{"counted": open, "__main__.Counted": open}}
	return &source{child: child, worker: &loaderWorker{}, opened: map[*python.Record]data.Dataset{}}, opened, closed
}

// samples are the numbers in a data set.
func samples(t *testing.T, ds data.Dataset) (all []int) {
	t.Helper()
	for i := range ds.Len() {
		s, err := ds.Get(testContext(t), i)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, int(s[0].Item()))
	}
	return all
}

const (
	subsetClass = "torch.utils.data.dataset.Subset"
	concatClass = "torch.utils.data.dataset.ConcatDataset"
)

func subsetOf(of any, indices any) *python.Record {
	return object(subsetClass, "dataset", of, "indices", indices)
}

func TestChild_DataSetsAreAroundDataSets(t *testing.T) {
	tens := object("__main__.X", datasetName, "counted", "first", int64(10), "_cache", "ignored")
	byClass := object("__main__.Counted", "n", int64(3))
	args := object("__main__.X", datasetName, "counted", "unknown", "x", datasetArgs, python.NewDict("n", int64(2)))
	slots := &python.Record{Class: named("__main__.Slotted"),
		State: python.Tuple{nil, python.NewDict(datasetName, "counted", "n", int64(1))}}
	numbers := func(n ...int64) (list []any) {
		for _, i := range n {
			list = append(list, i)
		}
		return list
	}
	for _, c := range []struct {
		v    any
		want []int
	}{
		{byClass, []int{0, 1, 2}},
		{args, []int{0, 1}},
		{slots, []int{0}},
		{subsetOf(tens, numbers(3, -1, 3)), []int{13, 19, 13}},
		{subsetOf(tens, python.Tuple{int64(3), &python.Scalar{DType: "<i4", Data: []byte{4, 0, 0, 0}},
			tensor.Scalar(tensor.Int64, 5)}), []int{13, 14, 15}},
		{subsetOf(tens,
			&python.Record{Class: named("builtins.range"), Args: python.Tuple{int64(8), int64(1), int64(-3)}}),
			[]int{18, 15, 12}},
		{subsetOf(tens,
			&python.Record{Class: named("builtins.range"), Args: python.Tuple{int64(8), int64(8), int64(1)}}), nil},
		{subsetOf(tens, &python.Record{Class: named("builtins.range"),
			Args: python.Tuple{int64(5), int64(9), int64(1<<63 - 1)}}), []int{15}},
		{subsetOf(tens, tensor.FromSlice([]int32{7, -10}, 2)), []int{17, 10}},
		{subsetOf(tens, &python.Array{DType: "<u2", Shape: []int{2}, Data: []byte{9, 0, 0, 0}}), []int{19, 10}},
		{object(concatClass, "datasets", []any{byClass, subsetOf(tens, numbers(1)), byClass}),
			[]int{0, 1, 2, 11, 0, 1, 2}},
		{subsetOf(object(concatClass, "datasets", []any{byClass, tens, args}), numbers(14, 2, 3, 0)),
			[]int{1, 2, 10, 0}},
		{object(concatClass, "datasets", []any{}), nil},
	} {
		s, opened, closed := opening(t)
		ds, err := s.openDataset(testContext(t), c.v)
		if err != nil {
			t.Errorf("%v: %v", c.want, err)
			continue
		}
		if got := samples(t, ds); !slices.Equal(got, c.want) {
			t.Errorf("%v, not %v", got, c.want)
		}
		if err := s.close(); err != nil || *opened != *closed || *opened != len(s.closers)+*closed {
			t.Errorf("opened %d, closed %d: %v", *opened, *closed, err)
		}
	}
}

// One object of Python is opened once, wherever it is.
func TestChild_OneObjectIsOpenedOnce(t *testing.T) {
	s, opened, closed := opening(t)
	set := object("__main__.X", datasetName, "counted")
	for range 40 { // there are 2^40 ways to it
		set = object(concatClass, "datasets", []any{set, subsetOf(set, []any{})})
	}
	ds, err := s.openDataset(testContext(t), set)
	if err != nil || ds.Len() != 10 || *opened != 1 || s.close() != nil || *closed != 1 {
		t.Errorf("opened %d times, closed %d: %v", *opened, *closed, err)
	}
}

func TestChild_WhatIsNoDataSetIsRefused(t *testing.T) {
	self := subsetOf(nil, []any{})
	self.State.(*python.Dict).Set("dataset", self)
	set := object("__main__.X", datasetName, "counted")
	double := set
	for range 64 {
		double = object(concatClass, "datasets", []any{double, double})
	}
	deep := set
	for range mostDatasets {
		deep = subsetOf(deep, []any{int64(0)})
	}
	for _, c := range []struct {
		v    any
		want string
	}{
		{self, "contains itself"},
		{double, "number of samples of a ConcatDataset overflows int"},
		{deep, "more than 10000 data sets"},
		{int64(3), "data set is int64, want an object"},
		{object("__main__.X", datasetName, "nobody"), `data set "nobody" is not registered`},
		{object("__main__.X", "n", int64(3)), "data set __main__.X has no attribute shoal_dataset"},
		{&python.Record{Class: named("__main__.X")}, `or register Datasets["__main__.X"] in the Go program`},
		{object("__main__.X", datasetName, "counted", "file", "x"), `add a field tagged torch:"file"`},
		{object("__main__.X", datasetName, "counted", datasetArgs, []any{}),
			"shoal_args is []interface {}, want a dict"},
		{object(subsetClass, datasetName, nil, "dataset", set, "indices", []any{}), "has no attribute shoal_dataset"},
		{object("__main__.X", datasetName, "counted", "n", int64(-1)), "has -1 samples"},
		{object(subsetClass), "data set is <nil>"},
		{subsetOf(set, []any{int64(0), int64(10)}),
			"index 10 at position 1 of a Subset is out of range, its data set has 10 samples"},
		{subsetOf(set, []any{int64(-11)}), "index -11 at position 0 of a Subset"},
		{subsetOf(set, []any{0.5}), "index 0 of a Subset"},
		{subsetOf(set, "x"), "indices of a Subset are string"},
		{subsetOf(set, tensor.New(tensor.Float32, 1)), "are float32 of shape [1], want integers"},
		{subsetOf(set, tensor.New(tensor.Int64, 1, 1)), "are int64 of shape [1 1], want integers"},
		{subsetOf(set, &python.Record{Class: named("builtins.range"),
			Args: python.Tuple{int64(0), int64(1 << 62), int64(1)}}), "index 10 at position 10 of a Subset"},
		{subsetOf(set, &python.Record{Class: named("builtins.range"),
			Args: python.Tuple{int64(-1 << 63), int64(1 << 62), int64(1 << 62)}}),
			"index -9223372036854775808 at position 0 of a Subset"},
		{subsetOf(set,
			&python.Record{Class: named("builtins.range"), Args: python.Tuple{int64(0), int64(1), int64(0)}}),
			"invalid range"},
		{subsetOf(set, object("__main__.Indices")), "indices of a Subset are a __main__.Indices"},
		{object(concatClass, "datasets", set), "datasets is *python.Record, want a list"},
		{object("torch.utils.data.dataset.TensorDataset", "tensors", python.Tuple{}), "TensorDataset has 0 tensors"},
		{object("torch.utils.data.dataset.TensorDataset", "tensors", python.Tuple{"x"}),
			"element 0 of a TensorDataset is string"},
		{object("torch.utils.data.dataset.TensorDataset", "tensors",
			python.Tuple{tensor.New(tensor.Int64, 1), tensor.New(tensor.Int64, 2)}),
			"want as many rows as the first tensor"},
		{object("torch.utils.data.dataset.TensorDataset", "tensors", python.Tuple{tensor.New(tensor.Int64)}),
			"want as many rows as the first tensor"},
	} {
		s, opened, closed := opening(t)
		_, err := s.openDataset(testContext(t), c.v)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, not %s", err, c.want)
		}
		if s.close(); *opened != *closed {
			t.Errorf("%s: opened %d, closed %d", c.want, *opened, *closed)
		}
	}
}

func TestChild_SamplersMakeNumbersOfAnyKind(t *testing.T) {
	array, err := value.ArrayOf(tensor.FromSlice([]int64{2, -1}, 2))
	if err != nil {
		t.Fatal(err)
	}
	scalar := &python.Scalar{DType: array.DType, Data: []byte{3, 0, 0, 0, 0, 0, 0, 0}}
	for _, c := range []struct {
		index  any
		want   []int
		single bool
	}{
		{int64(4), []int{4}, true},
		{int64(-1), []int{9}, true},
		{scalar, []int{3}, true},
		{tensor.Scalar(tensor.Int32, 5), []int{5}, true},
		{[]any{int64(1), scalar, tensor.Scalar(tensor.Int64, -10)}, []int{1, 3, 0}, false},
		{python.Tuple{int64(1)}, []int{1}, false},
		{array, []int{2, 9}, false},
		{tensor.FromSlice([]int32{7, 8}, 2), []int{7, 8}, false},
		{&python.Record{Class: named("builtins.range"), Args: python.Tuple{int64(0), int64(6), int64(3)}},
			[]int{0, 3}, false},
		{[]any{int64(10), int64(-11)}, []int{10, -11}, false}, // the data set says that it has not these
	} {
		if got, single, err := requestedIndices(c.index, 10); err != nil || single != c.single ||
			!slices.Equal(got, c.want) {
			t.Errorf("%v: %v, %t, %v", c.index, got, single, err)
		}
	}
	for _, bad := range []any{
		"x", 0.5, nil, []any{0.5}, tensor.Scalar(tensor.Float32, 1), tensor.New(tensor.Int64, 1, 1),
	} {
		if _, _, err := requestedIndices(bad, 10); !errors.Is(err, ErrUnsupported) ||
			!strings.Contains(err.Error(), "of a batch") {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

func TestChild_StreamsFollowStreams(t *testing.T) {
	count := func(_ context.Context, w Worker) iter.Seq2[data.Sample, error] {
		return func(yield func(data.Sample, error) bool) {
			n, _ := w.Args.Get("n")
			for i := range n.(int64) {
				if !yield(data.Sample{tensor.Scalar(tensor.Int64, float64(i))}, nil) {
					return
				}
			}
		}
	}
	s := &source{child: Child{Streams: map[string]OpenStream{"count": count, "__main__.Count": count}},
		worker: &loaderWorker{}}
	one := object("__main__.X", datasetName, "count", "n", int64(2))
	chain := object(chainDataset.String(), "datasets", []any{one, object("__main__.Count", "n", int64(1)), one})
	all, err := s.collectStreams(object(chainDataset.String(), "datasets", python.Tuple{chain, one}), 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for sample := range chainStreams(all)(testContext(t)) {
		if got = append(got, int(sample.(data.Sample)[0].Item())); len(got) == 6 {
			break
		}
	}
	if !slices.Equal(got, []int{0, 1, 0, 0, 1, 0}) {
		t.Errorf("%v", got)
	}
	self := object(chainDataset.String())
	self.State = python.NewDict("datasets", []any{self, self})
	wide := one
	for range 60 {
		wide = object(chainDataset.String(), "datasets", []any{wide, wide})
	}
	for _, c := range []struct {
		v    any
		want string
	}{
		{self, "data set is"}, {wide, "more than 10000 data sets"},
		{object("__main__.X", datasetName, "nobody"), `stream "nobody" is not registered`},
		{object("__main__.X"), "has no attribute shoal_dataset"},
		{object(chainDataset.String(), "datasets", "x"), "want a list"},
	} {
		if _, err := s.collectStreams(c.v, 0); err == nil || !strings.Contains(err.Error(), c.want) ||
			errors.Is(err, context.Canceled) {
			t.Errorf("%v, not %s", err, c.want)
		}
	}
}

// TestChild_StackDatasetsAreOpened has samples of data sets beside each other, by place and by
// name.
func TestChild_StackDatasetsAreOpened(t *testing.T) {
	counted := func(first, n int) *python.Record {
		return object("__main__.Counted", "first", first, "n", n)
	}
	s, opened, closed := opening(t)
	shared := counted(0, 3)
	inner := object("torch.utils.data.dataset.StackDataset", "datasets",
		python.NewDict("low", shared, "high", counted(100, 3)))
	ds, err := s.openDataset(t.Context(),
		object("torch.utils.data.dataset.StackDataset", "datasets", python.Tuple{shared, inner}))
	if err != nil || ds.Len() != 3 || *opened != 2 {
		t.Fatalf("%v, %v, %d opened", ds, err, *opened)
	}
	for _, set := range []data.Dataset{ds, data.NewSubset(ds, []int{2})} {
		v, err := data.Value(t.Context(), set, set.Len()-1)
		if err != nil {
			t.Fatal(err)
		}
		var numbers []float64
		parts := v.(python.Tuple)
		all := python.Tuple{parts[0]}
		for _, part := range parts[1].(*python.Dict).All() {
			all = append(all, part)
		}
		for _, part := range all {
			numbers = append(numbers, part.([1]*tensor.Tensor)[0].Item())
		}
		if !slices.Equal(numbers, []float64{2, 2, 102}) {
			t.Errorf("%v", numbers)
		}
	}
	if err := s.close(); err != nil || *closed != 2 {
		t.Errorf("%v, %d closed", err, *closed)
	}
	for want, datasets := range map[string]any{
		"have 3 and 4 samples": python.Tuple{counted(0, 3), counted(0, 4)}, "0 data sets": python.Tuple{},
		"want a list": 5, "data set is": python.Tuple{"x"},
	} {
		s, _, _ := opening(t)
		if _, err := s.openDataset(t.Context(),
			object("torch.utils.data.dataset.StackDataset", "datasets", datasets)); !errors.Is(err,
			ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
