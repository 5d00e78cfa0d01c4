package nn_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A cargo is something that a queue, a pipe, a queue of any and an argument carry.
type cargo struct {
	name string
	ways map[string]func(*testing.T)
}

// A load says how a cargo is made, what it looks like, and how it is changed. Shared says whether a
// receiver's change is seen by the sender.
type load[T any] struct {
	make   func(ctx context.Context) (T, error)
	look   func(T) string
	change func(T)
	shared bool
}

// A crate is an argument with the cargo in it, twice where it is of a registered type.
type crate[T any] struct {
	V    T
	Any  any
	Seen *ipc.Sender[string]
}

// carries adds to the table. tag is the name under which T is registered here; "" says that it is
// already, and "-" that it cannot be.
func carries[T any](name, tag string, l load[T]) cargo {
	if tag != "" && tag != "-" {
		codec.RegisterType[T](tag)
	}
	unpack := shoal.Register("carries "+name, func(ctx context.Context, rank int, c crate[T]) error {
		if tag != "-" && l.look(c.Any.(T)) != l.look(c.V) {
			return fmt.Errorf("as any it is %s, not %s", l.look(c.Any.(T)), l.look(c.V))
		}
		err := c.Seen.Put(ctx, l.look(c.V))
		l.change(c.V)
		return errors.Join(err, c.Seen.Put(ctx, l.look(c.V)), shut(c.V), shut(c.Any))
	})
	through := func(pass func(*testing.T, T) T) func(*testing.T) {
		return func(t *testing.T) { l.pass(t, pass) }
	}
	c := cargo{name, map[string]func(*testing.T){
		"queue": through(cross[T]),
		"pipe": through(func(t *testing.T, v T) T {
			a, b, err := ipc.Pipe[T, T]()
			testutil.NoError(t, err)
			defer b.Close()
			testutil.NoError(t, errors.Join(a.Send(testutil.Context(t), v), a.Close()))
			got, err := b.Recv(testutil.Context(t))
			testutil.NoError(t, err)
			return got
		}),
		"argument": func(t *testing.T) { l.send(t, unpack, tag != "-") },
	}}
	if tag != "-" {
		c.ways["queue of any"] = through(func(t *testing.T, v T) T { return cross[any](t, v).(T) })
	}
	return c
}

// pass sends the cargo within this process.
func (l load[T]) pass(t *testing.T, pass func(*testing.T, T) T) {
	v, err := l.make(testutil.Context(t))
	testutil.NoError(t, err)
	before := l.look(v)
	got := pass(t, v)
	if s := l.look(got); s != before {
		t.Errorf("%s arrived, not %s", s, before)
	}
	l.change(got)
	l.compare(t, v, before, l.look(got))
	testutil.NoError(t, errors.Join(shut(got), shut(v)))
}

// send sends it to another process.
func (l load[T]) send(t *testing.T, unpack *shoal.Func[crate[T]], tagged bool) {
	v, err := l.make(testutil.Context(t))
	testutil.NoError(t, err)
	seen, err := ipc.NewQueue[string](2)
	testutil.NoError(t, err)
	before := l.look(v)
	c := crate[T]{V: v, Seen: seen.Sender()}
	if tagged {
		c.Any = v
	}
	testutil.NoError(t, unpack.Spawn(testutil.Context(t), 1, c))
	arrived, err1 := seen.TryGet()
	changed, err2 := seen.TryGet()
	testutil.NoError(t, errors.Join(err1, err2))
	if arrived != before {
		t.Errorf("%s arrived, not %s", arrived, before)
	}
	l.compare(t, v, before, changed)
	testutil.NoError(t, errors.Join(seen.Close(), shut(v)))
}

func (l load[T]) compare(t *testing.T, v T, before, changed string) {
	t.Helper()
	want := before
	if l.shared {
		want = changed
	}
	if s := l.look(v); s != want || l.shared && before == changed {
		t.Errorf("it was %s, the receiver made it %s, and the sender sees %s", before, changed, s)
	}
}

// shut closes what can be closed.
func shut(v any) error {
	switch v := v.(type) {
	case *tensor.Tensor:
		if v != nil {
			return v.Close()
		}
	case interface{ Close() error }:
		return v.Close()
	case nn.CrossEntropyLoss:
		if v.Weight == nil {
			return nil
		}
		return v.Weight.Close()
	case nn.Layer:
		return nn.Close(v)
	case map[string]*tensor.Tensor:
		for _, t := range v {
			t.Close()
		}
	case map[string]any:
		for _, x := range v {
			shut(x)
		}
	case []any:
		for _, x := range v {
			shut(x)
		}
	}
	return nil
}

// copied is a load of which the receiver has one of its own.
func copied[T any](v T) load[T] {
	return load[T]{
		make:   func(context.Context) (T, error) { return v, nil },
		look:   func(v T) string { return fmt.Sprintf("%T %+v", v, v) },
		change: func(T) {},
	}
}

// usable is a load that is looked at by using it.
func usable[T any](create func() (T, error), use func(T) error) load[T] {
	return load[T]{
		make:   func(context.Context) (T, error) { return create() },
		look:   func(v T) string { return fmt.Sprint("used: ", use(v)) },
		change: func(T) {},
	}
}

// changing is a load of shared memory.
func changing[T any](create func() (T, error), look func(T) string, change func(T)) load[T] {
	return load[T]{func(context.Context) (T, error) { return create() }, look, change, true}
}

func strided() *tensor.Tensor {
	return tensor.Arange(tensor.Float32, 0, 24, 1).Reshape(2, 3, 4).Transpose(0, 2).Narrow(0, 1, 2)
}

func lookAt(t *tensor.Tensor) string {
	if t == nil {
		return "nil"
	}
	return fmt.Sprint(t.DType(), t.Shape(), t.Strides(), t)
}

func lookAtParam(p *autograd.Param) string {
	return fmt.Sprint(p.Name, p.Frozen, lookAt(p.T), lookAt(p.Grad))
}

func newParam() (*autograd.Param, error) {
	p := autograd.NewParam("weight", strided().Contiguous())
	p.Grad = tensor.Ones(tensor.Float32, p.T.Shape()...)
	return p, nil
}

func lookAtError(err error) string {
	var pe *fs.PathError
	return fmt.Sprint(err, errors.Is(err, ipc.ErrEmpty), errors.Is(err, fs.ErrNotExist),
		errors.Is(err, tensor.ErrLayout), errors.As(err, &pe))
}

// cargoes is the table. What is new in Shoal and can travel gets a line here.
var cargoes = []cargo{
	carries("tensor", "", changing(func() (*tensor.Tensor, error) { return strided(), nil }, lookAt,
		func(t *tensor.Tensor) { t.Fill(7) })),
	carries("no tensor", "-", load[*tensor.Tensor]{func(context.Context) (*tensor.Tensor,
		error) {
		return nil, nil
	}, lookAt, func(*tensor.Tensor) {}, false}),
	carries("tensor over a file", "-", changing(func() (*tensor.Tensor, error) {
		dir, err := os.MkdirTemp("", "carries")
		if err != nil {
			return nil, err
		}
		files = append(files, dir)
		return tensor.FromFileShared(filepath.Join(dir, "file"), tensor.Int64, 2, 3)
	}, lookAt, func(t *tensor.Tensor) { t.Fill(7) })),
	carries("parameter with gradient", "",
		changing(newParam, lookAtParam, func(p *autograd.Param) { p.T.Fill(2); p.Grad.Fill(3) })),
	carries("state dict", "", changing(
		func() (map[string]*tensor.Tensor, error) {
			return map[string]*tensor.Tensor{"weight": strided(), "bias": tensor.Ones(tensor.Float64, 2)}, nil
		},
		func(m map[string]*tensor.Tensor) string { return lookAt(m["weight"]) + lookAt(m["bias"]) },
		func(m map[string]*tensor.Tensor) { m["bias"].Fill(7) })),
	carries("module", "", changing(
		func() (*nn.Linear, error) { return nn.NewLinear(3, 2, tensor.NewGenerator(1)), nil },
		func(m *nn.Linear) string { return lookAtParam(m.Weight) + lookAtParam(m.Bias) },
		func(m *nn.Linear) { m.Weight.T.Fill(7) })),
	carries("loss", "", changing(
		func() (nn.CrossEntropyLoss, error) {
			return nn.CrossEntropyLoss{Weight: tensor.Ones(tensor.Float32, 3), Ignore: []int64{2}, Smoothing: 0.1,
				Reduction: autograd.BySum}, nil
		},
		func(l nn.CrossEntropyLoss) string {
			return fmt.Sprint(lookAt(l.Weight), l.Ignore, l.Smoothing, l.Reduction)
		},
		func(l nn.CrossEntropyLoss) { l.Weight.Fill(7) })),
	carries("loss without weights", "",
		load[nn.BCEWithLogitsLoss]{
			func(context.Context) (nn.BCEWithLogitsLoss, error) { return nn.BCEWithLogitsLoss{}, nil },
			func(l nn.BCEWithLogitsLoss) string { return lookAt(l.Positive) }, func(nn.BCEWithLogitsLoss) {}, false}),
	carries("dtype", "", copied(tensor.BFloat16)),
	carries("device", "", copied(tensor.Place{})), // those that are not the host's are in package cuda's TestCarries
	carries("shape", "", copied([]int{2, 3, 4})),
	carries("generator state", "", load[*tensor.Generator]{
		make: func(context.Context) (*tensor.Generator, error) {
			g := tensor.NewGenerator(5)
			g.Uint64()
			return g, nil
		},
		look:   func(g *tensor.Generator) string { return hex.EncodeToString(g.State()) },
		change: func(g *tensor.Generator) { g.Uint64() },
	}),
	carries("number", "", copied(5)),
	carries("text", "", copied("text")),
	carries("duration", "", copied(time.Second)),
	carries("nested any", "", copied(map[string]any{"a": []any{1, 2.5, nil, "b"}, "c": tensor.Int8})),
	carries("nil", "-", copied[any](nil)),
	carries("no error", "-", load[error]{func(context.Context) (error, error) { return nil, nil },
		lookAtError, func(error) {}, false}),
	carries("error", "-", load[error]{
		func(context.Context) (error, error) {
			_, err := os.Open("/none")
			return fmt.Errorf("worker: %w, %w: %w", ipc.ErrEmpty, tensor.ErrLayout, err), nil
		}, lookAtError, func(error) {}, false}),
	carries("queue", "carries.queue", changing(func() (*ipc.Queue[int], error) { return ipc.NewQueue[int](4) },
		func(q *ipc.Queue[int]) string { return fmt.Sprint(q.Len(), " of ", q.Cap()) },
		func(q *ipc.Queue[int]) { q.TryPut(1) })),
	carries("sender", "carries.sender", changing(func() (*ipc.Sender[int], error) {
		q, err := ipc.NewQueue[int](4)
		return q.Sender(), errors.Join(err, hold(q))
	}, func(s *ipc.Sender[int]) string { return fmt.Sprint(s.Len(), " of ", s.Cap()) },
		func(s *ipc.Sender[int]) { s.TryPut(1) })),
	carries("receiver", "carries.receiver", changing(func() (*ipc.Receiver[int], error) {
		q, err := ipc.NewQueue[int](4)
		return q.Receiver(), errors.Join(err, q.TryPut(1), hold(q))
	}, func(r *ipc.Receiver[int]) string { return fmt.Sprint(r.Len(), " of ", r.Cap()) },
		func(r *ipc.Receiver[int]) { r.TryGet() })),
	carries("pipe", "carries.pipe", changing(func() (*ipc.PipeEnd[int, int], error) {
		a, b, err := ipc.Pipe[int, int]()
		return a, errors.Join(err, b.TrySend(1), hold(b))
	}, func(c *ipc.PipeEnd[int, int]) string { return fmt.Sprint(c.Len()) },
		func(c *ipc.PipeEnd[int, int]) { c.TryRecv() })),
	carries("joinable queue", "carries.joinable",
		changing(func() (*ipc.JoinableQueue[int], error) { return ipc.NewJoinableQueue[int](4) },
			func(q *ipc.JoinableQueue[int]) string { return fmt.Sprint(q.Len()) },
			func(q *ipc.JoinableQueue[int]) { q.Put(context.Background(), 1) })),
	carries("memory", "", changing(func() (*ipc.Memory, error) { return ipc.NewMemory("", 8) },
		func(m *ipc.Memory) string { return fmt.Sprint(m.Bytes()) }, func(m *ipc.Memory) { m.Bytes()[0]++ })),
	carries("shareable list", "", changing(func() (*ipc.ShareableList,
		error) {
		return ipc.NewShareableList("text", 5)
	},
		func(l *ipc.ShareableList) string { v, err := l.At(0); return fmt.Sprint(l.Len(), v, err) },
		func(l *ipc.ShareableList) { l.Set(0, "other") })),
	carries("pipe of two types", "carries.duplex", changing(func() (*ipc.PipeEnd[int, string], error) {
		a, b, err := ipc.Pipe[int, string]()
		return a, errors.Join(err, b.TrySend("one"), hold(b))
	}, func(c *ipc.PipeEnd[int, string]) string { return fmt.Sprint(c.Len()) },
		func(c *ipc.PipeEnd[int, string]) { c.TryRecv() })),
	carries("mutex", "", usable(ipc.NewMutex,
		func(m *ipc.Mutex) error { return errors.Join(m.TryLock(), m.Unlock()) })),
	carries("rwmutex", "", usable(ipc.NewRWMutex,
		func(m *ipc.RWMutex) error { return errors.Join(m.TryRLock(), m.RUnlock()) })),
	carries("recursive mutex", "", usable(ipc.NewRecursiveMutex, func(m *ipc.RecursiveMutex) error {
		o := ipc.NewOwner()
		return errors.Join(m.TryLock(o), m.TryLock(o), m.Unlock(o), m.Unlock(o))
	})),
	carries("cond", "", usable(func() (*ipc.Cond, error) {
		m, err := ipc.NewMutex()
		if err != nil {
			return nil, err
		}
		c, err := ipc.NewCond(m)
		return c, errors.Join(err, hold(m))
	}, func(c *ipc.Cond) error { return c.NotifyAll() })),
	carries("semaphore", "", changing(func() (*ipc.Semaphore, error) { return ipc.NewSemaphore(3) },
		func(s *ipc.Semaphore) string { return fmt.Sprint(s.Permits()) }, func(s *ipc.Semaphore) { s.Release() })),
	carries("event", "", changing(ipc.NewEvent, func(e *ipc.Event) string { return fmt.Sprint(e.IsSet()) },
		func(e *ipc.Event) { e.Set() })),
	carries("barrier", "", changing(func() (*ipc.Barrier, error) { return ipc.NewBarrier(3) },
		func(b *ipc.Barrier) string { return fmt.Sprint(b.Parties(), b.Broken()) },
		func(b *ipc.Barrier) { b.Abort() })),
	carries("once", "", changing(ipc.NewOnce, func(o *ipc.Once) string { return fmt.Sprint(o.Done()) },
		func(o *ipc.Once) { o.Do(context.Background(), func() error { return nil }) })),
	carries("value", "carries.value", changing(func() (*ipc.Value[float64], error) { return ipc.NewValue(2.5) },
		func(v *ipc.Value[float64]) string { return fmt.Sprint(v.Load()) }, func(v *ipc.Value[float64]) { v.Add(1) })),
	carries("array", "carries.array", changing(func() (*ipc.Array[int64], error) { return ipc.ArrayOf([]int64{1, 2}) },
		func(a *ipc.Array[int64]) string { return fmt.Sprint(a.At(1)) }, func(a *ipc.Array[int64]) { a.Set(1, 9) })),
}

// files and held are what loads leave to the end of their test.
var (
	files []string
	held  []interface{ Close() error }
)

func hold(c interface{ Close() error }) error {
	held = append(held, c)
	return nil
}

// TestCarries sends everything by every way.
func TestCarries(t *testing.T) {
	for _, c := range slices.Concat(cargoes, proxies) {
		for way, f := range c.ways {
			t.Run(c.name+" by "+way, func(t *testing.T) {
				d, err := arena.New(arena.Options{Budget: 64 << 20})
				testutil.NoError(t, err)
				arena.SetDefault(d)
				f(t)
				for _, h := range held {
					testutil.NoError(t, h.Close())
				}
				for _, dir := range files {
					testutil.NoError(t, os.RemoveAll(dir))
				}
				held, files = nil, nil
				arena.SetDefault(nil)
				testutil.NoError(t, d.Close())
			})
		}
	}
}
