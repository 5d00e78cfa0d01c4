//go:build !race

package nn_test

import (
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
)

// The race detector makes pools forget on purpose.
func TestATrainingStepInAScopeAllocatesNothing(t *testing.T) {
	defer kernel.SetThreads(kernel.Threads())
	kernel.SetThreads(1)
	g := tensor.NewGenerator(1)
	net, scope := NewMNISTNet(g), autograd.NewScope()
	x, target := tensor.RandN(tensor.Float32, g, 8, 1, 28, 28), tensor.RandInt(g, 0, 10, 8)
	sgd := optim.NewSGD(net.Params(), optim.SGDOptions{LR: 0.01, Momentum: 0.5})
	step := func() {
		sgd.ZeroGrad()
		nn.NLLLoss(net.Forward(scope.Const(x)), target).Backward()
		sgd.Step()
		scope.Reset()
	}
	for range 3 {
		step()
	}
	if n := testing.AllocsPerRun(100, step); n != 0 {
		t.Fatalf("a step allocates %v times, want 0", n)
	}
}
