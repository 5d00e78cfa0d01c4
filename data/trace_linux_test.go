package data_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/timeline"
	"github.com/shoal-mp/shoal/trace"
)

func init() { codec.RegisterType[paced]("data_test.paced") }

// paced is samples that take a while each.
type paced int

func (n paced) Len() int { return int(n) }

func (n paced) Get(_ context.Context, i int) (data.Sample, error) {
	time.Sleep(100 * time.Microsecond)
	return data.Sample{tensor.Full(tensor.Uint8, float64(i%200), 4, 4)}, nil
}

func (n paced) Samples(ctx context.Context, p data.Part) iter.Seq2[data.Sample, error] {
	return func(yield func(data.Sample, error) bool) {
		for i := p.Index; i < int(n); i += p.Count {
			s, err := n.Get(ctx, i)
			if !yield(s, err) {
				return
			}
		}
	}
}

var stacked = data.RegisterCollate("test.stacked",
	func(_ context.Context, samples []data.Sample) (data.Batch, error) { return data.Stack(samples) })

// oneEpoch runs one epoch with a trace, and reads that.
func oneEpoch(t *testing.T, stream bool, o data.Options) *timeline.Log {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.json")
	tr, err := trace.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	o.Trace, o.BatchSize = tr, 20
	var l *data.Loader
	if stream {
		l = data.NewStreamLoader(paced(400), o)
	} else {
		l = data.NewLoader(paced(400), o)
	}
	defer l.Close()
	n := 0
	for batch, err := range l.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		n += batch[0].Dim(0)
		batch.Close()
	}
	if n != 400 {
		t.Fatalf("%d samples", n)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	log, err := timeline.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func TestTrace_HasAllThatWorkersDo(t *testing.T) {
	for name, c := range map[string]struct {
		o       data.Options
		stream  bool
		tracks  int
		perLife float64 // that spans explain of a worker's life
	}{
		"goroutines":          {data.Options{Workers: 3}, false, 3, 0.99},
		"processes":           {data.Options{Workers: 2, Kind: data.Processes}, false, 2, 0.95},
		"consumer":            {data.Options{}, false, 1, 0},
		"stream":              {data.Options{Workers: 2, Parts: 4}, true, 2, 0.99},
		"stream of processes": {data.Options{Workers: 2, Parts: 4, Kind: data.Processes}, true, 2, 0.95},
		"collate":             {data.Options{Workers: 2, Persistent: true, Collate: stacked}, false, 2, 0.99},
	} {
		t.Run(name, func(t *testing.T) {
			shoaltest.NoLeaks(t)
			c.o.Transform = data.ToTensor
			log := oneEpoch(t, c.stream, c.o)
			fetched, workers, pids := 0, 0, make(map[int]bool)
			for _, k := range log.Tracks {
				if !strings.HasPrefix(k.Name, "loader") {
					continue
				}
				workers++
				pids[k.PID] = true
				fetch, n := k.Sum("fetch")
				fetched += n
				load, loads := k.Sum("load")
				transform, m := k.Sum("transform")
				if n > 0 && m == 0 || fetch+transform > load || fetch < time.Duration(n)*100*time.Microsecond {
					t.Errorf("%s: %d times fetch for %v, transform %d times for %v, load %v", k.Name, n, fetch, m,
						transform, load)
				}
				if _, n := k.Sum("deliver"); n < loads-1 { // the last one may be on its way
					t.Errorf("%s: %d loads, %d of them delivered", k.Name, loads, n)
				}
				life, covered := k.Covered()
				if covered > life || float64(covered) < c.perLife*float64(life) {
					t.Errorf("%s: spans of %v in a life of %v", k.Name, covered, life)
				}
			}
			if workers != c.tracks || log.Lost != 0 {
				t.Errorf("%d tracks of workers, want %d; %d spans lost", workers, c.tracks, log.Lost)
			}
			processes := c.o.Kind == data.Processes
			if processes == pids[os.Getpid()] || processes && len(pids) != c.o.Workers {
				t.Errorf("workers in processes %v", pids)
			}
			if fetched < 400 { // a sample to learn the layout may be fetched again
				t.Errorf("%d samples were fetched", fetched)
			}
			for _, k := range log.Tracks {
				if _, n := k.Sum("use"); k.Name == "batches" && n != 20 {
					t.Errorf("the consumer used %d batches", n)
				}
			}
			if len(log.Tracks) != workers+1 {
				t.Error(fmt.Sprint(len(log.Tracks), " tracks"))
			}
		})
	}
}
