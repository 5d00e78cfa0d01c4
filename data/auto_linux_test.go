package data_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/wire"
)

// crowded is a set that takes Here where the consumer is and There in another process.
type crowded struct {
	N           int
	Home        int // the consumer's process
	Here, There time.Duration
}

func init() { wire.RegisterType[*crowded]("test.crowded") }

func (c *crowded) Len() int { return c.N }
func (c *crowded) Get(context.Context, int) (data.Sample, error) {
	if os.Getpid() == c.Home {
		time.Sleep(c.Here)
	} else {
		time.Sleep(c.There)
	}
	return data.Sample{tensor.Scalar(tensor.Int64, float64(c.N))}, nil
}

func TestAutoStaysWithWhatIsQuicker(t *testing.T) {
	me := os.Getpid()
	for name, c := range map[string]struct {
		set  data.Dataset
		want data.Kind
	}{
		"better in processes":      {&crowded{100, me, 40 * time.Millisecond, time.Microsecond}, data.Processes},
		"better in goroutines":     {&crowded{200, me, time.Millisecond, 60 * time.Millisecond}, data.Goroutines},
		"cannot go into processes": {&slowly{upTo(200)}, data.Goroutines},
	} {
		l := data.NewLoader(c.set, data.Options{BatchSize: 8, Workers: 4, Kind: data.Auto, Persistent: true})
		for epoch := 0; l.Stats().Kind == data.Auto; epoch++ {
			want := c.set.Len()
			for b, err := range l.Epoch(t.Context(), epoch) {
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				want -= b[0].Dim(0)
			}
			if want != 0 {
				t.Errorf("%s: %d samples are missing", name, want)
			}
		}
		if got := l.Stats().Kind; got != c.want {
			t.Errorf("%s: kind %d, want %d", name, got, c.want)
		}
		if batches, err := read(t, l, 0); err != nil || len(batches) != (c.set.Len()+7)/8 {
			t.Errorf("%s: after the decision %d batches, %v", name, len(batches), err)
		}
		l.Close()
	}
}

// slowly is a set of a type that nobody has registered.
type slowly struct{ numbers }

func (s *slowly) Get(ctx context.Context, i int) (data.Sample, error) {
	time.Sleep(time.Millisecond)
	return s.numbers.Get(ctx, i)
}
