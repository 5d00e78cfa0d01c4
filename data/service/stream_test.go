package service_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/internal/maker"
	"github.com/shoal-mp/shoal/data/service"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A series is a Stream of numbers.
type series struct{ of numbers }

func (s series) Samples(ctx context.Context, p data.Part) iter.Seq2[data.Sample, error] {
	return func(yield func(data.Sample, error) bool) {
		for i := range s.of.n {
			if !p.Has(i) {
				continue
			}
			sample, err := s.of.Get(ctx, i)
			if !yield(sample, err) {
				return
			}
		}
	}
}

func streamLoader(s data.Stream, change func(o *data.Options)) *data.Loader {
	o := data.Options{BatchSize: 4, Seed: 7, Workers: 2}
	if change != nil {
		change(&o)
	}
	return data.NewStreamLoader(s, o)
}

// localStream is what a data.Loader delivers in the same epochs.
func localStream(t *testing.T, s data.Stream, epochs int, change func(o *data.Options)) (all [][]got) {
	l := streamLoader(s, change)
	defer l.Close()
	for range epochs {
		all = append(all, epoch(t, l.Batches(t.Context()), nil))
	}
	return all
}

// listenStream serves a Stream in this process.
func listenStream(t *testing.T, s data.Stream, o service.HostOptions, change func(o *data.Options)) *service.Host {
	t.Helper()
	return listenTo(t, streamLoader(s, change), o)
}

// TestStream_IsWhatALocalLoaderDelivers, in the same order and with the same bits, with any number
// of data hosts.
func TestStream_IsWhatALocalLoaderDelivers(t *testing.T) {
	const samples = 203
	for name, change := range map[string]func(o *data.Options){
		"as usual":        nil,
		"without workers": func(o *data.Options) { o.Workers = 0 },
		"DropLast":        func(o *data.Options) { o.DropLast = true },
		"5 parts":         func(o *data.Options) { o.Parts = 5 },
		"1 part":          func(o *data.Options) { o.Parts = 1 },
	} {
		want := localStream(t, series{numbers{samples, 0, -1}}, 2, change)
		for n := range 3 {
			var addrs []string
			for range n + 1 {
				h := listenStream(t, series{numbers{samples, 0, -1}}, service.HostOptions{}, change)
				addrs = append(addrs, h.Addr())
			}
			l := dial(t, service.Options{}, addrs...)
			if l.Len() != -1 {
				t.Errorf("Len is %d", l.Len())
			}
			batches := 0
			for e := range 2 {
				all := epoch(t, l.Batches(t.Context()), nil)
				if !same(all, want[e]) {
					t.Errorf("%s, %d hosts, epoch %d: %v, want %v", name, n+1, e, all, want[e])
				}
				batches += len(all)
			}
			s := l.Stats()
			if s.Batches != batches || s.Bytes == 0 {
				t.Errorf("%+v", s)
			}
			for _, h := range s.Hosts {
				if share := len(addrs); h.Batches < batches/share/2 && name != "1 part" || !h.Connected ||
					h.Losses > 0 {
					t.Errorf("%s: a host has too little to do: %+v", name, h)
				}
			}
		}
	}
}

// TestStream_RanksReadTheirParts, as local Loaders of ranks do. There may be more than parts.
func TestStream_RanksReadTheirParts(t *testing.T) {
	const samples = 203
	s := series{numbers{samples, 0, -1}}
	a, b := listenStream(t, s, service.HostOptions{}, nil), listenStream(t, s, service.HostOptions{}, nil)
	for _, world := range []int{2, 3, 20} {
		var all [][]got
		for rank := range world {
			want := localStream(t, s, 1, func(o *data.Options) { o.Rank, o.World = rank, world })[0]
			l := dial(t, service.Options{Rank: rank, World: world}, a.Addr(), b.Addr())
			mine := epoch(t, l.Batches(t.Context()), nil)
			l.Close()
			if !same(mine, want) {
				t.Errorf("rank %d of %d: %v, want %v", rank, world, mine, want)
			}
			all = append(all, mine)
		}
		once(t, samples, all...)
	}
}

// TestStream_KilledHosts kills two of three hosts in the middle of an epoch. The third reads their
// parts again, and each sample comes once.
func TestStream_KilledHosts(t *testing.T) {
	const samples = 800
	want := localStream(t, series{numbers{samples, 0, -1}}, 1, nil)[0]
	all, addrs := hosts(t, 3, job{Samples: samples, Seed: 7, Sleep: time.Millisecond, Stream: true})
	l := dial(t, service.Options{}, addrs...)
	got := epoch(t, l.Batches(t.Context()), func(step int) {
		switch step {
		case 30:
			all[0].kill()
		case 90:
			all[2].kill()
		}
	})
	once(t, samples, got)
	if !same(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	s := l.Stats()
	if s.Hosts[0].Losses == 0 || s.Hosts[2].Losses == 0 || s.Hosts[1].Losses > 0 || s.Hosts[0].Batches == 0 {
		t.Errorf("%+v", s.Hosts)
	}
}

// TestStream_KilledTrainers kills two trainers that share two epochs, and starts them again from
// the last states of their ledgers, while hosts are killed and started.
func TestStream_KilledTrainers(t *testing.T) {
	const samples, world, epochs = 400, 2, 2
	ledger := livesOf(t, job{Samples: samples, Seed: 7, Stream: true}, world, epochs, 30)
	for _, batches := range ledger {
		once(t, samples, batches)
	}
}

// TestStream_Resume: the States of a trainer are those of a local Loader, and each goes on from
// those of the other, and with another World from those of all.
func TestStream_Resume(t *testing.T) {
	const samples = 203
	s := series{numbers{samples, 0, -1}}
	want := localStream(t, s, 2, nil)
	h := listenStream(t, s, service.HostOptions{}, nil)
	here, there := streamLoader(s, nil), dial(t, service.Options{}, h.Addr())
	defer here.Close()
	next, stop := iter.Pull2(here.Batches(t.Context()))
	defer stop()
	var states []data.State
	epoch(t, there.Batches(t.Context()), func(int) {
		b, err, _ := next()
		if err != nil {
			t.Fatal(err)
		}
		b.Close()
		if !reflect.DeepEqual(there.State(), here.State()) {
			t.Errorf("%+v there, %+v here", there.State(), here.State())
		}
		states = append(states, there.State())
	})
	if st := there.State(); st.Epoch != 1 || len(st.Parts) > 0 {
		t.Errorf("%+v after the epoch", st)
	}
	l := dial(t, service.Options{}, h.Addr())
	for _, at := range []int{0, 17, 40, len(states) - 1} {
		if err := l.Resume(states[at]); err != nil || !reflect.DeepEqual(l.State(), states[at]) {
			t.Fatal(err, l.State())
		}
		if got := epoch(t, l.Batches(t.Context()), nil); !same(got, want[0][at+1:]) {
			t.Errorf("after %d: %v, want %v", at, got, want[0][at+1:])
		}
		if got := epoch(t, l.Batches(t.Context()), nil); !same(got, want[1]) {
			t.Errorf("after %d, epoch 1: %v, want %v", at, got, want[1])
		}
	}
	var all [][]got
	states = nil
	for rank := range 2 { // two begin, and three go on
		l := dial(t, service.Options{Rank: rank, World: 2}, h.Addr())
		var mine []got
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if mine = append(mine, take(b)); len(mine) == 11+rank {
				break
			}
		}
		all, states = append(all, mine), append(states, l.State())
	}
	for rank := range 3 {
		l := dial(t, service.Options{Rank: rank, World: 3}, h.Addr())
		if err := l.Resume(states...); err != nil {
			t.Fatal(err)
		}
		all = append(all, epoch(t, l.Batches(t.Context()), nil))
	}
	once(t, samples, all...)
	for _, states := range [][]data.State{nil, {{Seed: 1}}, {{Seed: 7, Samples: 4}}, {{Seed: 7, Batches: 2}}} {
		if err := l.Resume(states...); !errors.Is(err, data.ErrState) {
			t.Errorf("%+v: %v", states, err)
		}
	}
	set := dial(t, service.Options{}, listen(t, numbers{40, 0, -1}, service.HostOptions{}, nil).Addr())
	for _, states := range [][]data.State{nil, states} {
		if err := set.Resume(states...); !errors.Is(err, data.ErrState) {
			t.Errorf("%+v: %v", states, err)
		}
	}
}

// TestStream_BadSample: the error is that of a local Loader and names the data host, or the sample
// is skipped there.
func TestStream_BadSample(t *testing.T) {
	s := series{numbers{100, 0, 37}}
	l := dial(t, service.Options{}, listenStream(t, s, service.HostOptions{}, nil).Addr())
	var last error
	for b, err := range l.Batches(t.Context()) {
		if last = err; err == nil {
			b.Close()
		}
	}
	var host *service.HostError
	var sample *data.SampleError
	if !errors.As(last, &host) || !errors.As(last, &sample) || !errors.Is(last, errBad) ||
		sample.Part != (data.Part{Index: 37 % 16, Count: 16}) || sample.Index != 37/16 {
		t.Errorf("%v", last)
	}
	skip := func(o *data.Options) { o.Skip = func(*data.SampleError) bool { return true }; o.BatchSize = 1 }
	want := localStream(t, s, 1, skip)[0]
	l = dial(t, service.Options{}, listenStream(t, s, service.HostOptions{}, skip).Addr())
	if all := epoch(t, l.Batches(t.Context()), nil); !same(all, want) || len(all) != 99 || l.Stats().Samples != 99 {
		t.Errorf("%v, want %v", all, want)
	}
}

// TestStream_OptionsThatDoNotFit say what to do.
func TestStream_OptionsThatDoNotFit(t *testing.T) {
	s := series{numbers{40, 0, -1}}
	h := listenStream(t, s, service.HostOptions{}, nil)
	for text, o := range map[string]service.Options{
		"World and Rank": {Dynamic: true}, "leave it out": {Coordinated: true, World: 2}, "at most": {World: 1 << 20},
	} {
		o.Key, o.Patience = key, patience
		if _, err := service.Dial(t.Context(), o, h.Addr()); !errors.Is(err, service.ErrOptions) ||
			!strings.Contains(err.Error(), text) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	_, err := service.OpenDataset(t.Context(), service.Options{Key: key}, h.Addr())
	if !errors.Is(err, service.ErrOptions) || !strings.Contains(err.Error(), "use Dial") {
		t.Errorf("%v", err)
	}
	l := streamLoader(s, nil)
	defer l.Close()
	for _, o := range []service.HostOptions{{Key: key, Cache: 1}, {Key: key, Ledger: t.TempDir() + "/ledger"}} {
		if _, err := service.Listen(l, "127.0.0.1:0", o); !errors.Is(err, service.ErrOptions) ||
			!strings.Contains(err.Error(), "leave them out") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for what, change := range map[string]func(o *data.Options){
		"number of parts": func(o *data.Options) { o.Parts = 5 },
		"DropLast":        func(o *data.Options) { o.DropLast = true },
		"batch size":      func(o *data.Options) { o.BatchSize = 5 },
		"first sample":    func(o *data.Options) { o.Transform = data.TransformFunc(plusOne) },
	} {
		other := listenStream(t, s, service.HostOptions{}, change)
		_, err := service.Dial(t.Context(), service.Options{Key: key, Patience: patience}, h.Addr(), other.Addr())
		if !errors.Is(err, service.ErrMismatch) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	set := listen(t, numbers{40, 0, -1}, service.HostOptions{}, nil)
	_, err = service.Dial(t.Context(), service.Options{Key: key, Patience: patience}, h.Addr(), set.Addr())
	if !errors.Is(err, service.ErrMismatch) {
		t.Errorf("a Stream and a Dataset: %v", err)
	}
}

// A watched stream counts how many of its parts are open, and what was read of them.
type watched struct {
	series
	open, begun, read *atomic.Int64
}

func watch(s series) watched {
	return watched{s, new(atomic.Int64), new(atomic.Int64), new(atomic.Int64)}
}

func (w watched) Samples(ctx context.Context, p data.Part) iter.Seq2[data.Sample, error] {
	return func(yield func(data.Sample, error) bool) {
		w.open.Add(1)
		w.begun.Add(1)
		defer w.open.Add(-1)
		for sample, err := range w.series.Samples(ctx, p) {
			w.read.Add(1)
			if !yield(sample, err) {
				return
			}
		}
	}
}

// TestStream_HostForgetsATrainerThatLeft: what was read for a loop ends with it, and with the
// connection. A part is read once in an epoch, and not further than was asked for.
func TestStream_HostForgetsATrainerThatLeft(t *testing.T) {
	w := watch(series{numbers{3000, 0, -1}})
	h := listenStream(t, w, service.HostOptions{Name: "watched"}, nil)
	l := dial(t, service.Options{}, h.Addr())
	closed := func(what string) {
		t.Helper()
		testutil.EventuallyNoError(t, func() error {
			if w.open.Load() > 0 {
				return fmt.Errorf("%s: %d parts are open", what, w.open.Load())
			}
			return nil
		})
	}
	some := func(l *service.Loader, n int) {
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			b.Close()
			if n--; n == 0 {
				break
			}
		}
	}
	some(l, -1)
	closed("after an epoch")
	if w.begun.Load() != 16 || w.read.Load() != 3000 {
		t.Errorf("%d parts were begun, and %d samples read", w.begun.Load(), w.read.Load())
	}
	before := runtime.NumGoroutine()
	for range 40 { // of which it remembers nothing, so they are not too many
		some(l, 20)
	}
	closed("after loops that were broken off")
	if n := w.read.Load() - 3000; n > 40*4*(20+8) {
		t.Errorf("%d samples were read for 40 loops of 20 batches of 4", n)
	}
	testutil.EventuallyNoError(t, func() error {
		if runtime.NumGoroutine() > before+20 {
			return fmt.Errorf("%d goroutines, and %d before the loops, of which each had two workers",
				runtime.NumGoroutine(), before)
		}
		return nil
	})
	other := dial(t, service.Options{}, h.Addr())
	next, stop := iter.Pull2(other.Batches(t.Context()))
	defer stop()
	if b, err, _ := next(); err != nil {
		t.Error(err)
	} else {
		b.Close()
	}
	if w.open.Load() == 0 {
		t.Error("nothing is open for the loop that goes on")
	}
	other.Close()
	closed("after Close")
}

// TestStream_LoopsAtTheSameTime: a trainer may read several epochs at once.
func TestStream_LoopsAtTheSameTime(t *testing.T) {
	w := watch(series{numbers{203, 0, -1}})
	want := localStream(t, w.series, 3, nil)
	h := listenStream(t, w, service.HostOptions{Name: "watched"}, nil)
	l := dial(t, service.Options{}, h.Addr())
	all := make([][]got, 3)
	var nexts []func() (data.Batch, error, bool)
	for range all {
		next, stop := iter.Pull2(l.Batches(t.Context()))
		defer stop()
		nexts = append(nexts, next)
	}
	for more := true; more; {
		more = false
		for e, next := range nexts {
			if b, err, ok := next(); err != nil {
				t.Fatal(err)
			} else if ok {
				all[e], more = append(all[e], take(b)), true
			}
		}
	}
	for e := range all {
		if !same(all[e], want[e]) {
			t.Errorf("epoch %d: %v, want %v", e, all[e], want[e])
		}
	}
	if n := w.begun.Load(); n != 3*16 {
		t.Errorf("%d parts were begun for 3 loops of 16", n)
	}
	var loops []func()
	for n := 1; ; n++ { // until it is too many
		next, stop := iter.Pull2(l.Batches(t.Context()))
		loops = append(loops, stop)
		b, err, _ := next()
		if err != nil {
			if !strings.Contains(err.Error(), "too many concurrent loops") || n != 17 {
				t.Errorf("loop %d: %v", n, err)
			}
			break
		}
		b.Close()
	}
	for _, stop := range loops {
		stop()
	}
}

// TestStream_SlowTrainer: a trainer that does not take its batches makes a host hold and read no
// more than it has asked for, while another one goes on.
func TestStream_SlowTrainer(t *testing.T) {
	w := watch(series{numbers{1000, 0, -1}})
	h := listenStream(t, w, service.HostOptions{Name: "watched", Ahead: 2}, nil)
	slow := dial(t, service.Options{Prefetch: 3}, h.Addr())
	for b, err := range slow.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		b.Close()
		quick := dial(t, service.Options{}, h.Addr())
		once(t, 1000, epoch(t, quick.Batches(t.Context()), nil))
		quick.Close()
		break
	}
	if n := w.read.Load() - 1000; n > 4*5 {
		t.Errorf("%d samples were read for a trainer that has taken one batch of 4 and asks for 3 ahead", n)
	}
	if s := h.Stats(); s.MostHeld == 0 || s.MostHeld > 2*2*4*(8+4) {
		t.Errorf("the host held %d bytes, of batches of 48, 2 for each of 2 trainers", s.MostHeld)
	}
}

// TestHost_RefusesPortionsThatAreNone, and goes on.
func TestHost_RefusesPortionsThatAreNone(t *testing.T) {
	stream := dial(t, service.Options{}, listenStream(t, series{numbers{40, 0, -1}}, service.HostOptions{}, nil).Addr())
	set := dial(t, service.Options{}, listen(t, numbers{40, 0, -1}, service.HostOptions{}, nil).Addr())
	good := maker.Portion{Part: 1, Count: 16, N: 4}
	for _, p := range []maker.Portion{{}, {Count: 16}, {Count: 16, N: 5}, {Count: 16, N: -1},
		{Part: 16, Count: 16, N: 4}, {Part: -1, Count: 16, N: 4}, {Count: 1 << 40, N: 4},
		{Count: 16, N: 4, From: -1}, {Count: 16, N: 4, Epoch: -1}} {
		if _, err := service.Read(t.Context(), stream, p); err == nil {
			t.Errorf("%+v", p)
		}
	}
	if some, err := service.Read(t.Context(), stream, good); err != nil || !some {
		t.Error(some, err)
	}
	good.From = 1 << 50
	if some, err := service.Read(t.Context(), stream, good); err != nil || some {
		t.Error(some, err)
	}
	if _, err := service.Read(t.Context(), set, good); err == nil {
		t.Error("a Dataset has parts")
	}
	once(t, 40, epoch(t, stream.Batches(t.Context()), nil))
	once(t, 40, epoch(t, set.Batches(t.Context()), nil))
}

// sentences is a Stream of samples of any structure.
type sentences struct{ n int }

func (s sentences) Values(_ context.Context, p data.Part) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		for i := range s.n {
			if p.Has(i) && !yield(labelled{int64(i), names(i)}, nil) {
				return
			}
		}
	}
}

// TestStream_HasSamplesOfAnyStructure, over the network as here.
func TestStream_HasSamplesOfAnyStructure(t *testing.T) {
	h := listenStream(t, data.StructuredStream(sentences{50}), service.HostOptions{}, nil)
	l := dial(t, service.Options{}, h.Addr())
	var all []int64
	for b, err := range service.BatchesOf[labelledBatch](t.Context(), l) {
		if err != nil {
			t.Fatal(err)
		}
		for k, i := range tensor.Data[int64](b.Number) {
			if b.Name[k] != names(int(i)) {
				t.Errorf("sample %d is %q", i, b.Name[k])
			}
			all = append(all, i)
		}
		b.Number.Close()
	}
	slices.Sort(all)
	if len(all) != 50 || all[0] != 0 || all[49] != 49 || l.Stats().Samples != 50 {
		t.Errorf("%v, %+v", all, l.Stats())
	}
}

// TestStream_EndsInTheMiddle: the context's end, and Close.
func TestStream_EndsInTheMiddle(t *testing.T) {
	h := listenStream(t, series{numbers{4000, 200 * time.Microsecond, -1}}, service.HostOptions{}, nil)
	l := dial(t, service.Options{}, h.Addr())
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var last error
	for b, err := range l.Batches(ctx) {
		if last = err; err == nil {
			b.Close()
			cancel(errBad)
		}
	}
	if !errors.Is(last, errBad) {
		t.Errorf("the context's end: %v", last)
	}
	for range 2 {
		for b, err := range l.Batches(t.Context()) {
			if last = err; err == nil {
				b.Close()
				l.Close()
			}
		}
		if !errors.Is(last, data.ErrClosed) {
			t.Errorf("Close: %v", last)
		}
	}
}
