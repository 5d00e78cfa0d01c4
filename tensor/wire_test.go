package tensor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestTensor_ArrivesWithItsLayout(t *testing.T) {
	d := local(t)
	base := count(tensor.Float64, 4, 5, 6)
	for _, v := range []*tensor.Tensor{
		base, base.Permute(2, 0, 1), base.Select(1, 2), base.Slice(2, 1, -1, 2),
		base.Select(0, 0).Select(0, 0).Select(0, 3),
		base.Narrow(0, 4, 0), base.Unsqueeze(1).Expand(4, 7, 5, 6),
	} {
		got, err := cross(t, d, v)
		testutil.NoError(t, err)
		if got.Offset() != v.Offset() || fmt.Sprint(got.Shape(), got.Strides()) != fmt.Sprint(v.Shape(),
			v.Strides()) || !tensor.Equal(got, v) {
			t.Errorf("%v of strides %v arrived as %v of strides %v", v.Shape(), v.Strides(), got.Shape(), got.Strides())
		}
		testutil.NoError(t, got.Close())
		testutil.NoError(t, v.Close())
	}
	if copied := d.Stats().Copied; copied != 4*5*6*8 {
		t.Errorf("%d bytes were copied", copied)
	}
	collect(t, func() bool { return d.Stats().Blocks == 0 }) // with the views in between, which nobody has closed
}

func TestTensor_ViewsOfOneStorageArriveAsSuch(t *testing.T) {
	d := local(t)
	a := count(tensor.Float32, 2, 3)
	sent := []*tensor.Tensor{a, a.T(), a.Select(0, 1), nil, tensor.Ones(tensor.Bool, 2)}
	got, err := cross(t, d, sent)
	testutil.NoError(t, err)
	if !got[0].SameStorage(got[1]) || !got[0].SameStorage(got[2]) || got[0].SameStorage(got[4]) || got[3] != nil {
		t.Error("storages were confused")
	}
	got[2].Fill(-1)
	if s := a.Sum(); s != 0 {
		t.Errorf("the sender's sum is %v", s)
	}
	for _, x := range append(sent, got...) {
		if x != nil {
			testutil.NoError(t, x.Close())
		}
	}
}

func TestTensor_IsSentWhileItIsOpen(t *testing.T) {
	d := local(t)
	a := tensor.New(tensor.Float32, 1)
	testutil.NoError(t, a.Close())
	if _, err := cross(t, d, a); !errors.Is(err, tensor.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	other, err := arena.NewLocal(1 << 20)
	testutil.NoError(t, err)
	arena.SetDefault(other)
	b, err := tensor.NewShared(tensor.Float32, 1)
	testutil.NoError(t, err)
	arena.SetDefault(d)
	if _, err := cross(t, d, b); !errors.Is(err, tensor.ErrDomain) {
		t.Errorf("another domain's: %v", err)
	}
	testutil.NoError(t, errors.Join(b.Close(), other.Close()))
}

// The golden file fixes the wire form that PROTOCOL.md shows: a change of it is a change of the
// protocol.
func TestTensor_HasTheGoldenWireForm(t *testing.T) {
	d := local(t)
	base := count(tensor.Float32, 2, 3)
	other := tensor.New(tensor.BFloat16, 300)
	tensors := []*tensor.Tensor{
		base, base.T(), base.Select(1, 2), base.Select(0, 1).Select(0, 2), base.Narrow(0, 2, 0), nil,
		other.Narrow(0, 299, 1), tensor.New(tensor.Complex128).Unsqueeze(0).Expand(5),
	}
	plan, err := codec.PlanOf[[]*tensor.Tensor]()
	testutil.NoError(t, err)
	var e codec.Encoder
	e.Reset(nil)
	testutil.NoError(t, plan.Encode(&e, tensors))
	m := e.Message()
	golden, err := os.ReadFile("testdata/wire.hex")
	testutil.NoError(t, err)
	var want strings.Builder
	for line := range strings.Lines(string(golden)) {
		digits, _, _ := strings.Cut(line, "#")
		want.WriteString(strings.Join(strings.Fields(digits), ""))
	}
	if got := fmt.Sprintf("%x", m.Body); got != want.String() || len(m.Blocks) != 3 {
		t.Fatalf("%d blocks and\n%s, want 3 and\n%s", len(m.Blocks), got, &want)
	}
	arrived, err := decode(plan, d, m)
	e.Done(true)
	testutil.NoError(t, err)
	for i, a := range arrived {
		if (a == nil) != (tensors[i] == nil) || a != nil && !tensor.Equal(a, tensors[i]) {
			t.Errorf("tensor %d arrived as %v", i, a)
		}
		if a != nil {
			testutil.NoError(t, a.Close())
		}
	}
	for _, x := range append(tensors, other) {
		if x != nil {
			testutil.NoError(t, x.Close())
		}
	}
	collect(t, func() bool { return d.Stats().Blocks == 0 })
}

// forged is a message that looks like a tensor's.
type forged struct {
	DType  uint64
	Block  arena.Handle
	Offset uint64
	Dense  bool
	Layout []uint64
}

func (f forged) encode(e *codec.Encoder) {
	e.ArrayLen(6)
	e.Uint(0) // the tag
	e.Uint(f.DType)
	e.Block(f.Block)
	e.Uint(f.Offset)
	sizes, strides := f.Layout, []uint64(nil)
	if !f.Dense {
		sizes, strides = f.Layout[:(len(f.Layout)+1)/2], f.Layout[(len(f.Layout)+1)/2:]
	}
	encodeNumbers(e, sizes)
	if f.Dense {
		e.Nil()
	} else {
		encodeNumbers(e, strides)
	}
}

func encodeNumbers(e *codec.Encoder, numbers []uint64) {
	e.ArrayLen(len(numbers))
	for _, n := range numbers {
		e.Uint(n)
	}
}

func TestTensor_BeyondItsBlockIsRefused(t *testing.T) {
	d := local(t)
	h, err := d.Alloc(64) // 16 elements
	testutil.NoError(t, err)
	f32 := uint64(tensor.Float32)
	plan, err := codec.PlanOf[*tensor.Tensor]()
	testutil.NoError(t, err)
	many := make([]uint64, 65)
	for _, c := range []struct {
		forged
		want error
	}{
		{forged{f32, h, 0, true, []uint64{16}}, nil},
		{forged{f32, h, 0, true, []uint64{17}}, tensor.ErrLayout},
		{forged{f32, h, 1, true, []uint64{16}}, tensor.ErrLayout},
		{forged{f32, h, 15, true, nil}, nil},
		{forged{f32, h, 16, true, nil}, tensor.ErrLayout},
		{forged{f32, h, 16, true, []uint64{0}}, nil},
		{forged{f32, h, 17, true, []uint64{0}}, nil}, // no elements, which may begin anywhere
		{forged{f32, h, 0, false, []uint64{4, 4, 5, 0}}, nil},
		{forged{f32, h, 1, false, []uint64{4, 4, 5, 0}}, tensor.ErrLayout},
		{forged{f32, h, 0, false, []uint64{4, 4, 5}}, tensor.ErrLayout},
		{forged{f32, h, 0, false, []uint64{1 << 47, 1 << 47, 0, 0}}, tensor.ErrLayout},
		{forged{f32, h, 0, true, []uint64{1 << 63}}, tensor.ErrLayout},
		{forged{f32, h, 0, true, many}, tensor.ErrLayout},
		{forged{f32, h, 1<<48 - 1, true, nil}, tensor.ErrLayout},
		{forged{f32, h, 1 << 48, true, nil}, tensor.ErrLayout},
		{forged{f32, h, 1<<64 - 1, true, []uint64{1}}, tensor.ErrLayout},
		// 2^64 elements: 0, if nobody looked
		{forged{f32, h, 0, true, []uint64{1 << 32, 1 << 32}}, tensor.ErrLayout},
		{forged{f32, h, 0, true, []uint64{1 << 31, 1 << 33, 4}}, tensor.ErrLayout}, // 2^66
		// none, but its strides are beyond numbers
		{forged{f32, h, 0, true, []uint64{0, 1 << 40, 1 << 40}}, tensor.ErrLayout},
		// 2^49 elements away
		{forged{f32, h, 0, false, []uint64{3, 1<<48 - 1}}, tensor.ErrLayout},
		// comes back to 0
		{forged{f32, h, 0, false, []uint64{1 << 32, 1 << 40, 1 << 32, 1 << 40}}, tensor.ErrLayout},
		// in several steps
		{forged{f32, h, 0, false, []uint64{2, 2, 2, 2, 1 << 47, 1 << 47, 1 << 47, 1}}, tensor.ErrLayout},
		// one element, expanded
		{forged{f32, h, 0, false, []uint64{1 << 40, 0}}, nil},
		{forged{uint64(tensor.Complex128), h, 0, true, []uint64{5}}, tensor.ErrLayout}, // 80 bytes
		// beyond the block's own end
		{forged{uint64(tensor.Uint8), h, 0, true, []uint64{4096}}, tensor.ErrLayout},
		{forged{uint64(tensor.Float8E5M2) + 1, h, 0, true, nil}, tensor.ErrDType},
		{forged{1<<64 - 1, h, 0, true, nil}, tensor.ErrDType},
	} {
		var e codec.Encoder
		e.Reset(nil)
		c.encode(&e)
		got, err := decode(plan, d, e.Message())
		e.Done(true)
		if !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.forged, err, c.want)
		}
		if err == nil {
			testutil.NoError(t, got.Close())
		}
	}
	testutil.NoError(t, d.Release(h))
}

func TestTensor_AnUnknownTagIsRefused(t *testing.T) {
	d := local(t)
	plan, err := codec.PlanOf[*tensor.Tensor]()
	testutil.NoError(t, err)
	for body, want := range map[string]error{
		"\x91\x03":                      codec.ErrTag,
		"\x94\x03\x08\x00\x90":          codec.ErrTag,
		"\x95\x00\x08\xd4S\x00\x00\x90": codec.ErrFormat, // a field less than its tag has
	} {
		_, err := decode(plan, d, codec.Message{Body: []byte(body)})
		if !errors.Is(err, want) {
			t.Errorf("%x: %v, want %v", body, err, want)
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, g := range []forged{
		{8, 1, 0, true, []uint64{4, 4}}, {9, 1, 3, false, []uint64{2, 2, 1, 4}}, {11, 1, 1 << 40, true, nil},
		{8, 1, 0, true, []uint64{1 << 32, 1 << 32}}, {8, 1, 0, false, []uint64{1 << 40, 0}},
		{0, 1, 256, true, []uint64{0}}, {7, 1, 0, false, []uint64{3, 1<<48 - 1}},
	} {
		var e codec.Encoder
		e.Reset(nil)
		g.encode(&e)
		f.Add(e.Message().Body)
		e.Done(true)
	}
	f.Add([]byte("\x99\x01\x08\xa2/x\x01\x02\x10\x00\x91\x02\xc0")) // in a file
	f.Add([]byte("\x98\x02\x08\xa2no\x10\xc0\x00\x91\x02\xc0"))     // on a device
	f.Add([]byte("\x91\x03"))                                       // with a tag that is unknown
	d, err := arena.NewLocal(1 << 20)
	testutil.NoError(f, err)
	arena.SetDefault(d)
	f.Cleanup(func() {
		arena.SetDefault(nil)
		testutil.NoError(f, d.Close())
	})
	h, err := d.Alloc(256)
	testutil.NoError(f, err)
	plan, err := codec.PlanOf[*tensor.Tensor]()
	testutil.NoError(f, err)
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := decode(plan, d, codec.Message{Body: body, Blocks: []arena.Handle{h}})
		if err == nil && got != nil {
			if got.Numel() < 1<<12 {
				got.Clone() // reads every element, of a dtype that is only kept as well
			}
			testutil.NoError(t, got.Close())
		}
		if held := d.Stats().Blocks; held != 1 {
			t.Fatalf("%d blocks after %v", held, err)
		}
	})
}

func TestTensor_PassesAQueue(t *testing.T) {
	d := local(t)
	ctx := testutil.Context(t)
	q, err := ipc.NewQueue[[]*tensor.Tensor](2)
	testutil.NoError(t, err)
	a := count(tensor.Int64, 10)
	testutil.NoError(t, q.Put(ctx, []*tensor.Tensor{a, a.Slice(0, 0, 10, 2)}))
	got, err := q.Get(ctx)
	testutil.NoError(t, err)
	if !tensor.Equal(got[0], a) || got[1].Sum() != 20 {
		t.Errorf("%v arrived", got)
	}
	got[0].Close()
	got[1].Close()
	a.Close()
	testutil.NoError(t, q.Close())
	collect(t, func() bool { return d.Stats().Blocks == 0 })
}

// A task is what the processes of TestTensor_IsWrittenByProcesses get.
type task struct {
	Sum, Rows *tensor.Tensor
	Out       *ipc.Sender[*tensor.Tensor]
}

var work = shoal.Register("work", func(ctx context.Context, rank int, j task) error {
	defer j.Sum.Close()
	defer j.Rows.Close()
	defer j.Out.Close()
	if !j.Sum.SameStorage(j.Rows) {
		return errors.New("views were torn apart")
	}
	for range 1000 {
		j.Sum.AddScalarAtomic(1)
	}
	row := j.Rows.Select(0, rank)
	row.Fill(float64(rank + 1))
	defer row.Close()
	fresh := tensor.Full(tensor.Float32, float64(rank), 5)
	defer fresh.Close()
	return j.Out.Put(ctx, fresh)
})

func TestTensor_IsWrittenByProcesses(t *testing.T) {
	d, err := arena.New(arena.Options{Budget: 64 << 20})
	testutil.NoError(t, err)
	use(t, d)
	const n = 3
	all := tensor.New(tensor.Float64, n+1, 4)
	j := task{Sum: all.Select(0, 0), Rows: all.Narrow(0, 1, n)}
	q, err := ipc.NewQueue[*tensor.Tensor](n)
	testutil.NoError(t, err)
	j.Out = q.Sender()
	testutil.NoError(t, work.Spawn(testutil.Context(t), n, j))
	if want := tensor.Full(tensor.Float64, 1000*n, 4); !tensor.Equal(j.Sum, want) {
		t.Errorf("the sum is %v", j.Sum)
	}
	if got := tensor.Sum(j.Rows, 1); !tensor.Equal(got, tensor.FromSlice([]float64{4, 8, 12}, 3)) {
		t.Errorf("the rows' sums are %v", got)
	}
	total := 0.0
	for range n {
		x, err := q.Get(testutil.Context(t))
		testutil.NoError(t, err)
		total += x.Sum()
		testutil.NoError(t, x.Close())
	}
	if total != 5*(0+1+2) {
		t.Errorf("what dead processes sent sums up to %v", total)
	}
	testutil.NoError(t, errors.Join(q.Close(), all.Close(), j.Sum.Close(), j.Rows.Close()))
}

// A part of a tensor without elements may begin behind its memory, and travels all the same.
func TestRegression_S4_1_EmptyViewsBehindTheirMemoryTravel(t *testing.T) {
	d := local(t)
	plan, err := codec.PlanOf[*tensor.Tensor]()
	testutil.NoError(t, err)
	x := tensor.New(tensor.Float32, 3, 0, 2)
	v := x.Narrow(0, 2, 1)
	testutil.NoError(t, v.Share())
	var e codec.Encoder
	e.Reset(nil)
	testutil.NoError(t, plan.Encode(&e, v))
	got, err := decode(plan, d, e.Message())
	e.Done(true)
	testutil.NoError(t, err)
	if got.Dims() != 3 || got.Dim(0) != 1 || got.Numel() != 0 {
		t.Errorf("%v", got)
	}
	testutil.NoError(t, errors.Join(got.Close(), v.Close(), x.Close()))
}

// The numbers of dtypes travel, so PROTOCOL.md has all of them.
func TestDType_NumbersAreThoseOfTheProtocol(t *testing.T) {
	b, err := os.ReadFile("../PROTOCOL.md")
	testutil.NoError(t, err)
	page, n := strings.Join(strings.Fields(string(b)), " "), 0
	for d := tensor.Bool; !strings.HasPrefix(d.String(), "dtype("); d++ {
		n++
		if want := fmt.Sprintf(" %d %s", d, d); !strings.Contains(page, want+",") && !strings.Contains(page, want+".") {
			t.Errorf("PROTOCOL.md has no%s", want)
		}
	}
	if n != 17 {
		t.Errorf("%d dtypes, want 17", n)
	}
}
