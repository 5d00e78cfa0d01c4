package optim_test

import (
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/wire"
)

// FuzzUnmarshalWire reads optimizers from messages without blocks: what is accepted can take a step.
func FuzzUnmarshalWire(f *testing.F) {
	plan, err := wire.PlanOf[*optim.SGD]()
	if err != nil {
		f.Fatal(err)
	}
	var e wire.Encoder
	e.Reset(nil)
	if err := plan.Encode(&e, optim.NewSGD(slices.Values([]*autograd.Param{autograd.NewParam("p", tensor.New(tensor.Float32, 1))}), optim.SGDOptions{LR: 0.1, Momentum: 0.5})); err != nil {
		f.Fatal(err)
	}
	f.Add(slices.Clone(e.Message().Body))
	e.Done(true)
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
