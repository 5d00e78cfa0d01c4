package cuda_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A cargo has what is of devices and travels; the table of everything else is that of package nn's
// TestCarries.
type cargo struct {
	Place, Host tensor.Place
	X           *tensor.Tensor
	State       map[string]*tensor.Tensor
	Any         []any
}

func newCargo(t *testing.T) cargo {
	x, err := tensor.Arange(tensor.Float32, 0, 24, 1).Reshape(2, 3, 4).Transpose(0, 2).ToDevice(forRank(t, 1))
	testutil.NoError(t, err)
	y, err := tensor.On(device(t, "cuda:0")).Ones(tensor.Float64, 2)
	testutil.NoError(t, err)
	place := tensor.Place{Device: forRank(t, 1)}
	return cargo{place, tensor.Place{}, x, map[string]*tensor.Tensor{"weight": y}, []any{place, x}}
}

// String is what a receiver compares, with what it makes on a device that arrived.
func (c cargo) String() string {
	made, err := tensor.On(c.Place.Device).Ones(tensor.Float32, 3)
	if err != nil {
		return err.Error()
	}
	defer made.Close()
	w, x := c.State["weight"], c.Any[1].(*tensor.Tensor)
	return fmt.Sprint(c.Place, c.Host, c.X.Device(), c.X.Strides(), c.X, w.Device(), w,
		c.Any[0] == any(c.Place), x.SameStorage(c.X), made.Device(), made)
}

// change is seen by everybody who has the tensor.
func (c cargo) change() error {
	m := cuda.MemoryOf(c.X)
	return m.Fill(0, m.Size(), make([]byte, 4))
}

func (c cargo) close() error {
	x := c.Any[1].(*tensor.Tensor)
	return errors.Join(c.X.Close(), x.Close(), c.State["weight"].Close())
}

func init() { codec.RegisterType[cargo]("cuda_test.cargo") }

type delivery struct {
	Cargo cargo
	Seen  *ipc.Sender[string]
}

var unpack = shoal.Register("unpack", func(ctx context.Context, _ int, d delivery) error {
	return errors.Join(d.Seen.Put(ctx, d.Cargo.String()), d.Cargo.change(), d.Cargo.close())
})

// through sends a cargo by a queue or a pipe, and reports what arrives.
func through[T any](t *testing.T, put func(context.Context, T) error, get func(context.Context) (T, error),
	c T) string {
	testutil.NoError(t, put(testutil.Context(t), c))
	v, err := get(testutil.Context(t))
	testutil.NoError(t, err)
	got := any(v).(cargo)
	defer func() { testutil.NoError(t, errors.Join(got.change(), got.close())) }()
	return got.String()
}

func TestDevice_TensorsTravelByEveryWay(t *testing.T) {
	for way, send := range map[string]func(*testing.T, cargo) string{
		"queue": func(t *testing.T, c cargo) string {
			q, err := ipc.NewQueue[cargo](1)
			testutil.NoError(t, err)
			defer q.Close()
			return through(t, q.Put, q.Get, c)
		},
		"queue of any": func(t *testing.T, c cargo) string {
			q, err := ipc.NewQueue[any](1)
			testutil.NoError(t, err)
			defer q.Close()
			return through[any](t, q.Put, q.Get, c)
		},
		"pipe": func(t *testing.T, c cargo) string {
			a, b, err := ipc.Pipe[cargo, cargo]()
			testutil.NoError(t, err)
			defer a.Close()
			defer b.Close()
			return through(t, a.Send, b.Recv, c)
		},
		"argument": func(t *testing.T, c cargo) string {
			q, err := ipc.NewQueue[string](1)
			testutil.NoError(t, err)
			defer q.Close()
			testutil.NoError(t, unpack.Spawn(testutil.Context(t), 1, delivery{c, q.Sender()}))
			seen, err := q.TryGet()
			testutil.NoError(t, err)
			return seen
		},
	} {
		t.Run(way, func(t *testing.T) {
			onDevices(t, needed(2), 64*mib)
			c := newCargo(t)
			before := c.String()
			if got := send(t, c); got != before {
				t.Errorf("%s arrived, not %s", got, before)
			}
			if after := c.String(); after == before {
				t.Errorf("a change of the receiver is not seen: %s", after)
			}
			testutil.NoError(t, c.close())
		})
	}
}

func TestDevice_ThatIsNotKnownIsAnError(t *testing.T) {
	onDevices(t, 1, 64*mib)
	for _, name := range []string{"", "tpu:0", "cuda:255", "cuda:-1"} {
		var p tensor.Place
		if err := p.UnmarshalText([]byte(name)); !errors.Is(err, tensor.ErrDevice) && !errors.Is(err, cuda.ErrDevice) {
			t.Errorf("%q: %v, %v", name, p, err)
		}
	}
}
