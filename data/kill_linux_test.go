package data_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// traced is noisy with the number of the process that has loaded each sample.
type traced struct{ noisy }

func (d *traced) Get(ctx context.Context, i int) (data.Sample, error) {
	s, err := d.noisy.Get(ctx, i)
	return append(s, tensor.Scalar(tensor.Int64, float64(os.Getpid()))), err
}

// MarshalWire writes what noisy is.
func (d *traced) MarshalWire(e *codec.Encoder) error { e.Uint(uint64(d.N)); return nil }

// UnmarshalWire is the counterpart of MarshalWire.
func (d *traced) UnmarshalWire(dec *codec.Decoder) error {
	n, err := dec.Uint()
	d.N = int(n)
	return err
}

func init() { codec.RegisterType[*traced]("test.traced") }

// TestLoader_SurvivesAnyWorkersDeathAtAnyTime kills one of eight workers again and again, from
// outside. Each batch is delivered once, in order.
func TestLoader_SurvivesAnyWorkersDeathAtAnyTime(t *testing.T) {
	o := data.Options{BatchSize: 5, Shuffle: true, Seed: 7}
	want := digests(t, data.NewLoader(&noisy{N: 300}, o), 0)
	o.Workers, o.Kind = 8, data.Processes
	l := data.NewLoader(&traced{noisy{N: 300}}, o)
	defer l.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	var got []uint64
	kills := 0
	for b, err := range l.Epoch(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, digest(t, b[:3])); len(got)%6 != 0 {
			continue
		}
		pid := int(tensor.At[int64](b[3], rng.IntN(5))) // that of a worker which has begun to work
		for _, p := range shoal.ActiveChildren() {
			if p.PID() == pid {
				p.Kill()
				kills++
			}
		}
	}
	if !slices.Equal(got, want) || kills == 0 {
		t.Errorf("%d batches after %d kills, want %d, the same", len(got), kills, len(want))
	}
}

func TestStats_SayWhichSideIsWaitedFor(t *testing.T) {
	s := data.Stats{Samples: 1000, Batches: 10, Workers: 2, Elapsed: 10 * time.Second,
		ConsumerStall: 8 * time.Second, Busy: 16 * time.Second}
	if !strings.Contains(s.String(), "100 samples/s") ||
		!strings.Contains(s.String(), "loading is the bottleneck: 8 workers would keep up") {
		t.Errorf("a slow loader says %q", s)
	}
	s.ConsumerStall, s.Busy = 10*time.Millisecond, 5*time.Second
	if !strings.Contains(s.String(), "the consumer is the bottleneck: 1 of 2 workers would suffice") {
		t.Errorf("a slow consumer says %q", s)
	}
	if line := (data.Stats{}).String(); strings.Contains(line, "bottleneck") {
		t.Errorf("before anything is known: %q", line)
	}
}

func TestStats_Count(t *testing.T) {
	for _, kind := range []data.Kind{data.Goroutines, data.Processes} {
		l := data.NewLoader(&noisy{N: 40}, data.Options{BatchSize: 4, Workers: 2, Kind: kind})
		n := 0
		for _, err := range l.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			n++
			if s := l.Stats(); s.Batches != n || s.Samples != 4*n || s.Ready < 0 || s.Ready > 4 ||
				s.Elapsed <= 0 || s.Workers != 2 {
				t.Errorf("kind %d: after batch %d: %+v", kind, n, s)
			}
		}
		s := l.Stats()
		if s.Busy <= 0 || s.ConsumerStall > s.Elapsed || s.Ready != 0 || s.String() == "" {
			t.Errorf("kind %d: %+v", kind, s)
		}
		if again := l.Stats(); again.Elapsed != s.Elapsed {
			t.Errorf("kind %d: the time goes on without a loop: %v, then %v", kind, s.Elapsed, again.Elapsed)
		}
		l.Close()
	}
}

// A hurdle is a set the first workers of which are killed when they open it, and then the first
// that load sample 3.
type hurdle struct {
	N, Kills int
	Dir      string
}

func init() { codec.RegisterType[*hurdle]("test.hurdle") }

// kill kills this process unless it has been called Kills times for a place.
func (h *hurdle) kill(place string) error {
	f, err := os.OpenFile(filepath.Join(h.Dir, place), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write([]byte{0}); err != nil {
		return err
	}
	if n, err := f.Seek(0, io.SeekCurrent); err != nil || int(n) > h.Kills {
		return err
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		return err
	}
	select {}
}

func (h *hurdle) Open(context.Context) (any, error) { return h, h.kill("open") }
func (h *hurdle) Len() int                          { return h.N }
func (h *hurdle) Get(_ context.Context, i int) (data.Sample, error) {
	if i == 3 {
		if err := h.kill("get"); err != nil {
			return nil, err
		}
	}
	return data.Sample{tensor.Scalar(tensor.Float64, float64(i))}, nil
}

// Deaths of workers that start, and of one that loads a sample, are retries.
func TestOptions_RetriesAreForKilledWorkersToo(t *testing.T) {
	want := []float64{0, 1, 2, 3, 4, 5}
	for retries, fails := range map[int]bool{0: true, 1000: false} {
		l := data.NewLoader(&hurdle{N: len(want), Kills: 6, Dir: t.TempDir()},
			data.Options{BatchSize: 2, Workers: 1, Kind: data.Processes, Retries: retries})
		defer l.Close()
		if !fails {
			if got := epochNumbers(t, l, func(b data.Batch) { b.Close() }); !slices.Equal(got, want) {
				t.Errorf("%v", got)
			}
		} else if err := epochError(testutil.Context(t), l); !errors.Is(err, shoal.ErrExited) {
			t.Errorf("without Retries: %v", err)
		}
	}
}
