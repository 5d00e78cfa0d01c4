package data_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// An enumerated set has the numbers up to N, without a Gather.
type enumerated struct{ N int }

func init() { codec.RegisterType[*enumerated]("test.enumerated") }

func (c *enumerated) Len() int { return c.N }
func (c *enumerated) Get(_ context.Context, i int) (data.Sample, error) {
	return data.Sample{tensor.Scalar(tensor.Float64, float64(i))}, nil
}

// epochNumbers returns the numbers of an epoch's batches. after gets each batch.
func epochNumbers(t *testing.T, l *data.Loader, after func(data.Batch)) (got []float64) {
	t.Helper()
	for b, err := range l.Batches(t.Context()) {
		testutil.NoError(t, err)
		got = append(got, tensor.Data[float64](b[0])...)
		after(b)
	}
	return got
}

// TestOptions_ReuseMakesCloseHarmless closes batches as consumers do without Reuse: each one, each
// twice, and all of them when the epoch is over.
func TestOptions_ReuseMakesCloseHarmless(t *testing.T) {
	want := make([]float64, 30)
	for i := range want {
		want[i] = float64(i)
	}
	oneOfEach(func(name string, workers int, kind data.Kind) {
		for what, set := range map[string]data.Dataset{
			"Get": &enumerated{30}, "Gather": data.NewTensorDataset(tensor.Arange(tensor.Float64, 0, 30, 1)),
		} {
			if s, ok := set.(*data.TensorDataset); ok {
				testutil.NoError(t, s.Share())
				defer s.Close()
			}
			l := data.NewLoader(set, data.Options{BatchSize: 4, Workers: workers, Kind: kind, Reuse: true,
				Persistent: workers > 0})
			defer l.Close()
			var late []data.Batch
			for how, after := range map[string]func(data.Batch){
				"once":  func(b data.Batch) { b.Close() },
				"twice": func(b data.Batch) { b.Close(); b.Close() },
				"late":  func(b data.Batch) { late = append(late, b) },
				"never": func(data.Batch) {},
			} {
				got := epochNumbers(t, l, after)
				for _, b := range late {
					b.Close()
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s, %s, closed %s: %v", name, what, how, got)
				}
			}
		}
	})
}

// A kept tensor of a batch that was overwritten has no values of another one.
func TestOptions_ReuseClosesBatches(t *testing.T) {
	l := data.NewLoader(&enumerated{8}, data.Options{BatchSize: 4, Workers: 1, Reuse: true})
	defer l.Close()
	var kept []data.Batch
	for b, err := range l.Batches(t.Context()) {
		testutil.NoError(t, err)
		kept = append(kept, b)
	}
	defer func() {
		if recover() == nil {
			t.Error("a batch that was overwritten can be read")
		}
	}()
	kept[0][0].Item()
}

// A hostile set does in the goroutines of the Loader what ends a program, at one place.
type hostile struct {
	at   string
	exit bool
}

func (h hostile) act(at string) {
	if h.at == at && h.exit {
		runtime.Goexit()
	}
	if h.at == at {
		panic("hostile")
	}
}

func (h hostile) Open(context.Context) (any, error) { h.act("Open"); return h, nil }
func (h hostile) Close() error                      { h.act("Close"); return nil }
func (h hostile) Len() int                          { return 8 }
func (h hostile) Get(_ context.Context, i int) (data.Sample, error) {
	if i == 5 {
		h.act("Get")
	}
	return data.Sample{tensor.Scalar(tensor.Float64, float64(i))}, nil
}

type hostileStream struct{ hostile }

func (h hostileStream) Open(context.Context) (any, error) { h.act("Open"); return h, nil }
func (h hostileStream) Samples(ctx context.Context, p data.Part) iter.Seq2[data.Sample, error] {
	return func(yield func(data.Sample, error) bool) {
		defer h.act("Stop")
		for i := range h.Len() {
			if s, err := h.Get(ctx, i); p.Has(i) && !yield(s, err) {
				return
			}
		}
	}
}

// TestLoader_ADataSetCannotEndTheProgram has data sets panic and call Goexit in the goroutines of
// the Loader, where nobody but the Loader can recover.
func TestLoader_ADataSetCannotEndTheProgram(t *testing.T) {
	for _, at := range []string{"Open", "Get", "Close", "Stop"} {
		for _, exit := range []bool{false, true} {
			for _, persistent := range []bool{false, true} {
				h := hostile{at, exit}
				o := data.Options{BatchSize: 2, Workers: 2, Persistent: persistent, Parts: 2}
				for what, l := range map[string]*data.Loader{
					"set": data.NewLoader(h, o), "stream": data.NewStreamLoader(hostileStream{h}, o),
				} {
					for range 2 {
						err := epochError(testutil.Context(t), l)
						// a Goexit is the death of a worker, which is retried, and the stream has
						// stopped then
						fails := at == "Open" || at == "Get" || at == "Stop" && what == "stream" && !exit
						if (err != nil) != fails {
							t.Errorf("%v in %s of a %s: %v", exit, at, what, err)
						} else if fails && !exit && !errors.Is(err, shoal.ErrPanic) {
							t.Errorf("panic in %s of a %s: %v", at, what, err)
						}
					}
					testutil.NoError(t, l.Close())
				}
			}
		}
	}
}

// epochError returns the error of an epoch.
func epochError(ctx context.Context, l *data.Loader) (last error) {
	for b, err := range l.Batches(ctx) {
		last = err
		b.Close()
	}
	return last
}
