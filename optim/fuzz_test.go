package optim_test

import (
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/wire"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// FuzzUnmarshalWire reads optimizers from messages without blocks: what is accepted can take a
// step.
func FuzzUnmarshalWire(f *testing.F) {
	inDomain(f)
	plan, err := wire.PlanOf[*optim.SGD]()
	testutil.NoError(f, err)
	p := autograd.NewParam("p", tensor.New(tensor.Float32, 1))
	var e wire.Encoder
	e.Reset(nil)
	testutil.NoError(f, plan.Encode(&e, optim.NewSGD(slices.Values([]*autograd.Param{p}),
		optim.SGDOptions{LR: 0.1, Momentum: 0.5})))
	f.Add(slices.Clone(e.Message().Body))
	e.Done(false)
	testutil.NoError(f, p.T.Close())
	f.Fuzz(func(t *testing.T, body []byte) {
		var d wire.Decoder
		d.Reset(wire.Message{Body: body}, nil)
		sgd, err := plan.Decode(&d)
		d.Done(err == nil)
		if err == nil && sgd != nil {
			sgd.Step()
		}
	})
}
