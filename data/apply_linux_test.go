package data_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/wire"
)

func init() {
	wire.RegisterType[plus]("test.plus")
	wire.RegisterType[*oneByOne]("test.oneByOne")
	wire.RegisterType[*asStream]("test.asStream")
	wire.RegisterType[stairs]("test.stairs")
}

// plus is a Transform of one's own that has a value.
type plus struct{ N float64 }

func (p plus) Apply(_, src *tensor.Tensor) *tensor.Tensor { return tensor.Add(src, src.Number(p.N)) }

// oneByOne is a set without a Gather.
type oneByOne struct{ Of data.Any[data.Dataset] }

func (d *oneByOne) Len() int { return d.Of.Value.Len() }
func (d *oneByOne) Get(ctx context.Context, i int) (data.Sample, error) {
	return d.Of.Value.Get(ctx, i)
}

// asStream is a set in order.
type asStream struct{ Set oneByOne }

func (d *asStream) Samples(ctx context.Context, p data.Part) iter.Seq2[data.Sample, error] {
	return func(yield func(data.Sample, error) bool) {
		for i := range d.Set.Len() {
			if s, err := d.Set.Get(ctx, i); p.Has(i) && !yield(s, err) {
				return
			}
		}
	}
}

func TestATransformIsTheSameInWorkersOfAnyKind(t *testing.T) {
	set := datasets.Digits(90, 1)
	tr := data.Compose(data.ToTensor, data.Normalize(datasets.MNISTMean, datasets.MNISTStd), plus{0.5})
	single := &oneByOne{data.Any[data.Dataset]{Value: set}}
	oneOfEach(func(name string, workers int, kind data.Kind) {
		for what, o := range map[string]data.Options{
			"rows": {BatchSize: 16}, "shared rows": {BatchSize: 16, Shared: true}, "samples": {BatchSize: 16},
			"single": {BatchSize: data.Single}, "stream": {BatchSize: 15, Parts: 1},
		} {
			o.Workers, o.Kind, o.Transform = workers, kind, tr
			l := data.NewLoader(set, o)
			switch what {
			case "samples", "single":
				l = data.NewLoader(single, o)
			case "stream":
				l = data.NewStreamLoader(&asStream{*single}, o)
			}
			at := 0
			for b, err := range l.Batches(t.Context()) {
				if err != nil {
					t.Fatalf("%s, %s: %v", name, what, err)
				}
				n := 1
				if what != "single" {
					n = b[0].Dim(0)
				}
				want := tr.Apply(nil, set.Tensors[0].Narrow(0, at, n))
				if what == "single" {
					want = want.Select(0, 0)
				}
				if !slices.Equal(b[0].Shape(), want.Shape()) || !tensor.Equal(b[0], want) ||
					b[0].IsShared() != (o.Shared || kind == data.Processes) {
					t.Errorf("%s, %s: the batch from sample %d on differs", name, what, at)
				}
				if o.Shared {
					b[0].Close()
					b[1].Close()
				}
				at += n
			}
			if at != set.Len() {
				t.Errorf("%s, %s: %d samples", name, what, at)
			}
			l.Close()
		}
	})
}

// stairs is a set whose samples are longer with each ten, and which writes rows itself.
type stairs int

func (d stairs) Len() int { return int(d) }
func (d stairs) Get(_ context.Context, i int) (data.Sample, error) {
	return data.Sample{tensor.Full(tensor.Int64, float64(i), 1+i/10)}, nil
}
func (d stairs) Gather(ctx context.Context, indices []int, into data.Batch) error {
	for k, i := range indices {
		s, _ := d.Get(ctx, i)
		row := into[0].Select(0, k)
		if !slices.Equal(row.Shape(), s[0].Shape()) {
			return data.ErrShape
		}
		row.CopyFrom(s[0])
	}
	return nil
}

func TestATransformMeetsOtherShapes(t *testing.T) {
	oneOfEach(func(name string, workers int, kind data.Kind) {
		l := data.NewLoader(stairs(95), data.Options{BatchSize: 5, Workers: workers, Kind: kind, Transform: plus{1}})
		defer l.Close()
		n := 0
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for k := range b[0].Dim(0) {
				if got := tensor.At[int64](b[0], k, b[0].Dim(1)-1); got != int64(n+1) || b[0].Dim(1) != 1+n/10 {
					t.Fatalf("%s: sample %d is %d, in a row of %d", name, n, got, b[0].Dim(1))
				}
				n++
			}
		}
		if n != 95 {
			t.Errorf("%s: %d samples", name, n)
		}
	})
}

func TestATransformThatFailsIsTheErrorOfItsSample(t *testing.T) {
	fails := data.TransformFunc(func(_, src *tensor.Tensor) *tensor.Tensor { panic("no") })
	for _, workers := range []int{0, 2} {
		_, err := read(t, data.NewLoader(upTo(4), data.Options{Workers: workers, Transform: fails}), 0)
		var bad *data.SampleError
		if !errors.As(err, &bad) || bad.Index != 0 || !errors.Is(err, shoal.ErrPanic) {
			t.Errorf("%d workers: %v, want the panic of sample 0", workers, err)
		}
	}
}
