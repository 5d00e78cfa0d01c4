package data_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"testing"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/tensor"
)

// few is a stream of seven samples.
type few struct{}

func (few) Samples(_ context.Context, p data.Part) iter.Seq2[data.Sample, error] {
	return func(yield func(data.Sample, error) bool) {
		for i := range 7 {
			if p.Has(i) && !yield(data.Sample{tensor.Scalar(tensor.Int64, float64(i))}, nil) {
				return
			}
		}
	}
}

// FuzzResume gives loaders states that come from elsewhere. They are refused, or what is left of
// the epoch is loaded.
func FuzzResume(f *testing.F) {
	for _, s := range []string{
		`{"seed":0,"epoch":1,"samples":4}`, `{"epoch":1,"samples":2,"ahead":[1,3],"width":2}`,
		`{"epoch":2,"batches":1}`,
		`{"epoch":0,"count":16,"parts":[{"index":3,"samples":1,"batches":1,"end":true}]}`,
		`{"count":99999999999,"parts":[{}]}`, `{"samples":-1}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, js []byte) {
		var s data.State
		if json.Unmarshal(js, &s) != nil {
			return
		}
		for _, l := range []*data.Loader{
			data.NewLoader(upTo(9), data.Options{BatchSize: 2, Shuffle: true}),
			data.NewLoader(upTo(9), data.Options{Batches: data.Batched(data.Sequential(9), 2, false)}),
			data.NewStreamLoader(few{}, data.Options{BatchSize: 2}),
		} {
			if err := l.Resume(s); err != nil {
				if !errors.Is(err, data.ErrState) {
					t.Errorf("%v, want ErrState", err)
				}
				continue
			}
			n := 0
			for b, err := range l.Batches(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				n += b[0].Dim(0)
			}
			if n > 9 {
				t.Errorf("%d samples of at most 9 after %s", n, js)
			}
			l.Close()
		}
	})
}
