package nn_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestMain(m *testing.M) { shoaltest.TestMain(m) }

// inDomain makes a small domain the test's.
func inDomain(t *testing.T) {
	d, err := arena.NewLocal(8 << 20)
	testutil.NoError(t, err)
	before := arena.Current()
	arena.SetDefault(d)
	t.Cleanup(func() {
		if n := d.Stats().Blocks; n != 0 {
			t.Errorf("%d blocks are left", n)
		}
		arena.SetDefault(before)
		testutil.NoError(t, d.Close())
	})
}

// cross sends v through a queue and returns what arrives.
func cross[T any](t *testing.T, v T) T {
	t.Helper()
	q, err := ipc.NewQueue[T](1)
	testutil.NoError(t, err)
	defer q.Close()
	testutil.NoError(t, q.Put(testutil.Context(t), v))
	got, err := q.Get(testutil.Context(t))
	testutil.NoError(t, err)
	return got
}

func TestLayer_SentIsTheSame(t *testing.T) {
	inDomain(t)
	net := NewMNISTNet(tensor.NewGenerator(1))
	nn.Eval(net)
	net.FC1.Weight.Frozen = true
	got := cross(t, net)
	if !got.Drop.Off || got.Drop.P != 0.5 || !got.FC1.Weight.Frozen || got.FC1.Weight.Name != "weight" {
		t.Errorf("fields were lost: %+v %+v", got.Drop, got.FC1.Weight)
	}
	got.FC2.Bias.T.Fill(7)
	if net.FC2.Bias.T.Mean() != 7 {
		t.Error("the two nets have their own parameters")
	}
	testutil.NoError(t, errors.Join(nn.Close(net), nn.Close(got), nn.Close(net)))
}

func TestSequential_TravelsWithItsLayers(t *testing.T) {
	inDomain(t)
	g := tensor.NewGenerator(1)
	net := nn.NewSequential(nn.NewConv2d(1, 2, 3, g), nn.NewMaxPool2d(2), nn.ReLU, &nn.Dropout2d{P: 0.5}, nn.Flatten,
		nn.NewSequential(nn.NewLinear(8, 4, g), nn.Tanh, nn.Sigmoid), &nn.Dropout{P: 0.5}, nn.LogSoftmax)
	nn.Eval(net)
	got := cross(t, net)
	x := autograd.NoGrad(tensor.RandN(tensor.Float32, g, 3, 1, 6, 6))
	if a, b := net.Forward(x).T(), got.Forward(x).T(); !tensor.Equal(a, b) {
		t.Errorf("%v, want %v", b, a)
	}
	var names []string
	for name := range nn.Named(got) {
		names = append(names, name)
	}
	if want := []string{"0.weight", "0.bias", "5.0.weight", "5.0.bias"}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
	testutil.NoError(t, errors.Join(nn.Close(net), nn.Close(got)))
}

type private struct{ nn.Func }

func TestSequential_WithAnUnknownLayerIsNotSent(t *testing.T) {
	inDomain(t)
	q, err := ipc.NewQueue[*nn.Sequential](1)
	testutil.NoError(t, err)
	defer q.Close()
	if err := q.Put(testutil.Context(t), nn.NewSequential(private{})); !errors.Is(err, codec.ErrUnknownType) {
		t.Errorf("%v, want ErrUnknownType", err)
	}
}

// A list of layers is what a Sequential is in a message. This one is not made by its sender.
type forged struct {
	layers []any
	net    *nn.Sequential
}

func (f *forged) MarshalWire(e *codec.Encoder) error { return codec.Encode(e, f.layers) }

func (f *forged) UnmarshalWire(d *codec.Decoder) (err error) {
	f.net, err = codec.Decode[*nn.Sequential](d)
	return err
}

// A layer that is nil has no Forward, so it is an error of the sender, and of the receiver of a
// message that somebody else has made.
func TestSequential_WithoutALayerIsRefused(t *testing.T) {
	inDomain(t)
	linear := nn.NewLinear(2, 2, tensor.NewGenerator(1))
	for _, layer := range []nn.Layer{nil, (*nn.Linear)(nil), (*nn.Sequential)(nil), (*nn.Dropout)(nil)} {
		sequentials, err := ipc.NewQueue[*nn.Sequential](1)
		testutil.NoError(t, err)
		err = sequentials.Put(testutil.Context(t), nn.NewSequential(linear, layer))
		if !errors.Is(err, codec.ErrFormat) {
			t.Errorf("sent with a nil %T: %v", layer, err)
		}
		lists, err := ipc.NewQueue[*forged](1)
		testutil.NoError(t, err)
		testutil.NoError(t, lists.Put(testutil.Context(t), &forged{layers: []any{linear, layer}}))
		if got, err := lists.Get(testutil.Context(t)); !errors.Is(err, codec.ErrFormat) || got != nil {
			t.Errorf("read with a nil %T: %v", layer, err)
		}
		testutil.NoError(t, errors.Join(sequentials.Close(), lists.Close()))
	}
	testutil.NoError(t, nn.Close(linear))
}

// job is what workers of these tests get.
type job struct {
	Net     *nn.Linear
	Reports *ipc.Sender[report]
}

type report struct {
	Had           bool    // a gradient arrived
	Before, After float64 // its sum, and that of what there is after adding 1 to each element
}

var addGradient = shoal.Register("nn_test.addGradient", func(ctx context.Context, _ int, j job) error {
	defer nn.Close(j.Net)
	b := j.Net.Bias
	r := report{Had: b.Grad != nil}
	if r.Had {
		r.Before = b.Grad.Sum()
	}
	autograd.Sum(b.Var()).Backward()
	r.After = b.Grad.Sum()
	return j.Reports.Put(ctx, r)
})

// gradientsOf lets two workers, one after the other, add 1 to each of the layer's 4 gradients.
func gradientsOf(t *testing.T, net *nn.Linear) (out [2]report) {
	t.Helper()
	q, err := ipc.NewQueue[report](2)
	testutil.NoError(t, err)
	defer q.Close()
	for i := range out {
		testutil.NoError(t, addGradient.Spawn(testutil.Context(t), 1, job{net, q.Sender()}))
		out[i], err = q.Get(testutil.Context(t))
		testutil.NoError(t, err)
	}
	return out
}

func TestParams_ShareAGradientThatExistsWhenSent(t *testing.T) {
	net := nn.NewLinear(3, 4, nil)
	defer nn.Close(net)
	net.Bias.Grad = tensor.Ones(tensor.Float32, 4)
	if got, want := gradientsOf(t, net), [2]report{{true, 4, 8}, {true, 8, 12}}; got != want {
		t.Errorf("workers report %+v, want %+v", got, want)
	}
	if sum := net.Bias.Grad.Sum(); sum != 12 {
		t.Errorf("the sender's gradient sums to %v, want 12", sum)
	}
}

func TestParams_SentWithoutAGradientMakeTheirOwn(t *testing.T) {
	net := nn.NewLinear(3, 4, nil)
	defer nn.Close(net)
	if got, want := gradientsOf(t, net), [2]report{{false, 0, 4}, {false, 0, 4}}; got != want {
		t.Errorf("workers report %+v, want %+v", got, want)
	}
	if net.Bias.Grad != nil {
		t.Errorf("the sender has a gradient %v", net.Bias.Grad)
	}
}

// Net is that of the package comment.
type Net struct{ Hidden, Out *nn.Linear }

func (n *Net) Forward(x *autograd.Var) *autograd.Var {
	return autograd.LogSoftmax(n.Out.Forward(autograd.ReLU(n.Hidden.Forward(x))), -1)
}

type lesson struct {
	Net   *Net
	Steps int
}

// signs makes points in the plane, whose class is the quadrant.
func signs(g *tensor.Generator, n int) (x, class *tensor.Tensor) {
	x, class = tensor.RandN(tensor.Float32, g, n, 2), tensor.New(tensor.Int64, n)
	for i := range n {
		for d, bit := range []int64{1, 2} {
			if tensor.At[float32](x, i, d) > 0 {
				tensor.SetAt(class, tensor.At[int64](class, i)+bit, i)
			}
		}
	}
	return x, class
}

var train = shoal.Register("nn_test.train", func(_ context.Context, rank int, l lesson) error {
	defer nn.Close(l.Net)
	g := tensor.NewGenerator(uint64(rank))
	sgd := optim.NewSGD(nn.Params(l.Net), optim.SGDOptions{LR: 0.1, Momentum: 0.5})
	for range l.Steps {
		x, class := signs(g, 32)
		sgd.ZeroGrad()
		nn.NLLLoss{}.Of(l.Net.Forward(autograd.Const(x)), class).Backward()
		sgd.Step()
	}
	return nil
})

// Three processes train one network without locks.
func Example() {
	g := tensor.NewGenerator(42)
	net := &Net{nn.NewLinear(2, 16, g), nn.NewLinear(16, 4, g)}
	if err := nn.Share(net); err != nil {
		fmt.Println(err)
		return
	}
	defer nn.Close(net)
	if err := train.Spawn(context.Background(), 3, lesson{net, 300}); err != nil {
		fmt.Println(err)
		return
	}
	x, class := signs(g, 1000)
	right := tensor.Eq(tensor.Argmax(net.Forward(autograd.NoGrad(x)).T(), 1), class)
	fmt.Println("more than 95 of 100 right:", right.To(tensor.Float32).Mean() > 0.95)
	// Output: more than 95 of 100 right: true
}
