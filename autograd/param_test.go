package autograd_test

import (
	"errors"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/tensor"
)

// taker hands out references of the blocks of a message that holds none itself.
type taker struct {
	domain *arena.Domain
	blocks []arena.Handle
}

func (k taker) Take(i int) (arena.Handle, error) {
	return k.blocks[i], k.domain.Retain(k.blocks[i])
}

// local makes a small domain the process's default until the test ends.
func local(t testing.TB) *arena.Domain {
	d, err := arena.NewLocal(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	arena.SetDefault(d)
	t.Cleanup(func() {
		arena.SetDefault(nil)
		d.Close()
	})
	return d
}

// receive decodes a parameter and gives all back that a malformed message has taken.
func receive(d *arena.Domain, m codec.Message) (*autograd.Param, error) {
	plan, err := codec.PlanOf[*autograd.Param]()
	if err != nil {
		return nil, err
	}
	var dec codec.Decoder
	dec.Reset(m, taker{d, m.Blocks})
	p, err := plan.Decode(&dec)
	if err == nil {
		err = dec.Finish()
	}
	dec.Done(err == nil)
	return p, err
}

func encode(t testing.TB, p *autograd.Param) codec.Message {
	var e codec.Encoder
	e.Reset(nil)
	err := codec.Encode(&e, p)
	e.Done(err == nil)
	if err != nil {
		t.Fatal(err)
	}
	return e.Message()
}

func TestParam_ArrivesWithWhatItHas(t *testing.T) {
	d := local(t)
	p := autograd.NewParam("weight", values(1, 1, 2, 3))
	p.Frozen = true
	got, err := receive(d, encode(t, p))
	if err != nil || got.Name != "weight" || !got.Frozen || got.Grad != nil || !tensor.Equal(got.T, p.T) {
		t.Fatalf("%+v, %v", got, err)
	}
	p.Grad = values(2, 1, 2, 3)
	again, err := receive(d, encode(t, p))
	if err != nil {
		t.Fatal(err)
	}
	again.ZeroGrad()
	if p.Grad.Sum() != 0 || !again.T.SameStorage(got.T) {
		t.Error("the gradient is not shared, or one value arrived as two storages")
	}
	for _, x := range []*autograd.Param{p, got, again, p} {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := d.Stats().Blocks; n != 0 {
		t.Errorf("%d blocks are left", n)
	}
}

func TestParam_WithAGradientOfAnotherShapeIsRefused(t *testing.T) {
	d := local(t)
	p := autograd.NewParam("weight", values(1, 1, 2, 3))
	for _, g := range []*tensor.Tensor{values(1, 1, 6), values(1, 1, 2, 3).To(tensor.Float32)} {
		p.Grad = g
		if _, err := receive(d, encode(t, p)); !errors.Is(err, codec.ErrFormat) {
			t.Errorf("gradient %v %v: %v", g.DType(), g.Shape(), err)
		}
		g.Close()
	}
	p.T.Close()
	if n := d.Stats().Blocks; n != 0 {
		t.Errorf("%d blocks are left", n)
	}
}

// A parameter without a value is an error of its sender. That a message of one is refused is in the
// corpus of FuzzParam.
func TestParam_WithoutAValueIsNotSent(t *testing.T) {
	var e codec.Encoder
	e.Reset(nil)
	if err := codec.Encode(&e, &autograd.Param{Name: "w"}); !errors.Is(err, tensor.ErrClosed) {
		t.Errorf("sent without a value: %v", err)
	}
	e.Done(false)
}

func FuzzParam(f *testing.F) {
	d := local(f)
	p := autograd.NewParam("weight", values(1, 1, 2, 3))
	f.Add(encode(f, p).Body)
	p.Grad = values(2, 1, 2, 3)
	m := encode(f, p)
	f.Add(m.Body)
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := receive(d, codec.Message{Body: body, Blocks: m.Blocks})
		if err == nil && got != nil {
			if got.T == nil {
				t.Fatal("a parameter without a value")
			}
			err = got.Close()
		}
		if n := d.Stats().Blocks; n != 2 {
			t.Fatalf("%d blocks after %v", n, err)
		}
	})
	p.Close()
}
