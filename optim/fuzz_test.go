package optim_test

import (
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// FuzzUnmarshalWire reads optimizers from messages without blocks: what is accepted can take a
// step.
func FuzzUnmarshalWire(f *testing.F) {
	inDomain(f)
	plan, err := codec.PlanOf[*optim.SGD]()
	testutil.NoError(f, err)
	p := autograd.NewParam("p", tensor.New(tensor.Float32, 1))
	var e codec.Encoder
	e.Reset(nil)
	testutil.NoError(f, plan.Encode(&e, optim.NewSGD(slices.Values([]*autograd.Param{p}),
		optim.SGDOptions{LR: 0.1, Momentum: 0.5})))
	f.Add(slices.Clone(e.Message().Body))
	e.Done(false)
	testutil.NoError(f, p.T.Close())
	f.Fuzz(func(t *testing.T, body []byte) {
		var d codec.Decoder
		d.Reset(codec.Message{Body: body}, nil)
		sgd, err := plan.Decode(&d)
		d.Done(err == nil)
		if err == nil && sgd != nil {
			sgd.Step()
		}
	})
}
