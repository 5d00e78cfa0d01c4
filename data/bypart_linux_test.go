package data_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/internal/maker"
	"github.com/shoal-mp/shoal/tensor"
)

// A far stream is read by makers, as data hosts read it for their trainers. From time to time a
// portion goes to another maker than the one before.
type far struct {
	makers []maker.Maker
	asked  atomic.Int64
}

type farReader struct {
	far *far
	at  []maker.Reader
}

func (f *far) Reader() maker.Reader {
	r := &farReader{far: f}
	for _, m := range f.makers {
		r.at = append(r.at, m.Reader())
	}
	return r
}

func (r *farReader) Read(ctx context.Context, p maker.Portion) (maker.Batch, error) {
	n := r.far.asked.Add(1)
	return r.at[int(n/5)%len(r.at)].Read(ctx, p)
}

func (r *farReader) Close() error {
	for _, at := range r.at {
		at.Close()
	}
	return nil
}

// farLoader returns a Loader with the options of a rank, whose batches makers make with these
// options.
func farLoader(t *testing.T, s data.Stream, makers int, o data.Options, rank, world int) *data.Loader {
	t.Helper()
	f := new(far)
	for range makers {
		l := data.NewStreamLoader(s, o)
		m, err := maker.Open(l)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close(); l.Close() })
		f.makers = append(f.makers, m)
	}
	l := maker.NewLoader(f, data.Options{BatchSize: o.BatchSize, Seed: o.Seed, DropLast: o.DropLast,
		Parts: o.Parts, Rank: rank, World: world, Workers: 3, Prefetch: 6}).(*data.Loader)
	t.Cleanup(func() { l.Close() })
	return l
}

// A step is a batch, and the State after it.
type step struct {
	values []int64
	state  data.State
}

func steps(t *testing.T, l *data.Loader, most int) (all []step) {
	t.Helper()
	for b, err := range l.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, step{slices.Clone(tensor.Data[int64](b[0])), l.State()})
		b.Close()
		if len(all) == most {
			break
		}
	}
	return all
}

// TestByPart_IsTheSameAsHere: what makers read for a loop that is elsewhere is what a Loader of
// that loop reads itself, and so are its States.
func TestByPart_IsTheSameAsHere(t *testing.T) {
	executors(func(name string, workers int, kind data.Kind) {
		for _, o := range []data.Options{
			{BatchSize: 4}, {BatchSize: 4, DropLast: true}, {BatchSize: 3, Parts: 5}, {BatchSize: data.Single},
		} {
			o.Workers, o.Kind, o.Seed = workers, kind, 5
			for _, world := range []int{1, 3, 20} {
				s := &counting{N: 203}
				if kind == data.Processes {
					if world == 20 {
						continue
					}
					s.Kill, s.Dir = []int{50, 130}, t.TempDir()
				}
				here := o
				here.Rank, here.World = world-1, world
				local := data.NewStreamLoader(s, here)
				want := steps(t, local, -1)
				local.Close()
				for makers := range 2 {
					got := steps(t, farLoader(t, s, makers+1, o, world-1, world), -1)
					if !reflect.DeepEqual(got, want) {
						t.Errorf("%s, %+v, rank %d of %d, %d makers:\n%v\nwant\n%v", name, o, world-1, world,
							makers+1, got, want)
					}
				}
			}
		}
	})
}

// TestByPart_GoesOnFromAState of a Loader here, and the other way round.
func TestByPart_GoesOnFromAState(t *testing.T) {
	o := data.Options{BatchSize: 4, Workers: 2, Seed: 5}
	s := &counting{N: 203}
	whole := data.NewStreamLoader(s, o)
	defer whole.Close()
	want := steps(t, whole, -1)
	for at := range len(want) {
		for name, l := range map[string]*data.Loader{"elsewhere": farLoader(t, s, 2, o, 0, 1),
			"here": data.NewStreamLoader(s, o)} {
			if err := l.Resume(want[at].state); err != nil {
				t.Fatal(err)
			}
			if got := steps(t, l, -1); !reflect.DeepEqual(got, slices.Clone(want[at+1:])) && len(got)+at+1 != 0 {
				if len(got) != 0 || at != len(want)-1 {
					t.Errorf("%s, after step %d:\n%v\nwant\n%v", name, at, got, want[at+1:])
				}
			}
			l.Close()
		}
	}
}

// TestByPart_Errors are those of a Loader here.
func TestByPart_Errors(t *testing.T) {
	o := data.Options{BatchSize: 3, Workers: 2, Debug: true}
	if _, err := read(t, farLoader(t, &deaf{20}, 1, o, 0, 1), 0); !errors.Is(err, data.ErrPart) {
		t.Errorf("%v, want ErrPart", err)
	}
	l := data.NewStreamLoader(&counting{N: 20}, o)
	defer l.Close()
	m, err := maker.Open(l)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := m.Batch(t.Context(), 0, 0); err == nil {
		t.Error("a Stream has batch 0")
	}
	if _, err := m.Gather(t.Context(), 0, []int{0}); err == nil {
		t.Error("a Stream has sample 0")
	}
	r := m.Reader()
	for _, p := range []maker.Portion{{}, {Count: 1}, {N: 1}, {Count: 1, N: 1, Part: 1}, {Count: 1, N: 1, Part: -1},
		{Count: 1, N: 1, From: -1}, {Count: 1, N: 1, Epoch: -1}, {Count: 1 << 30, N: 1}, {Count: 1, N: 4},
		{Count: 1, N: 1, From: 1<<63 - 1}} {
		if b, err := r.Read(t.Context(), p); err == nil {
			t.Errorf("%+v: %+v", p, b)
		}
	}
	b, err := r.Read(t.Context(), maker.Portion{Count: 2, From: 1 << 40, N: 3})
	if err != nil || !b.End || b.Read != 0 {
		t.Errorf("behind the end: %+v, %v", b, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.Read(ctx, maker.Portion{Count: 2, N: 3})
	r.Close()
	if _, err := r.Read(t.Context(), maker.Portion{Count: 2, N: 3}); err == nil {
		t.Error("it is closed")
	}
	set := data.NewLoader(data.NewTensorDataset(tensor.Arange(tensor.Int64, 0, 12, 1)), data.Options{})
	defer set.Close()
	if m, err = maker.Open(set); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := m.Reader().Read(t.Context(), maker.Portion{Count: 2, N: 3}); err == nil {
		t.Error("a Dataset has parts")
	}
}

// TestByPart_BoundsWhatIsOpen: a loop that asks for more and more parts is refused.
func TestByPart_BoundsWhatIsOpen(t *testing.T) {
	l := data.NewStreamLoader(&counting{N: 1}, data.Options{})
	defer l.Close()
	m, err := maker.Open(l)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	r := m.Reader()
	defer r.Close()
	for k := range 5000 {
		if _, err := r.Read(t.Context(), maker.Portion{Part: k, Count: 5000, N: 1}); err != nil {
			if k != 4096 {
				t.Errorf("%d parts: %v", k, err)
			}
			return
		}
	}
	t.Error(fmt.Sprint("a loop has ", 5000, " parts open"))
}
