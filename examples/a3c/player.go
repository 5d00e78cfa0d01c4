package main

import (
	"math"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
)

const (
	horizon  = 32 // steps between two updates
	discount = 0.99
	entropy  = 0.01 // weight of the entropy bonus
)

// A player is the state of a worker process: its game, and the experience since its last update.
// Only one goroutine may use it.
type player struct {
	job
	game    cartPole
	fell    bool
	over    bool // it fell or was truncated
	states  []float32
	actions []int64
	scope   *autograd.Scope
}

func newPlayer(rank int, j job) *player {
	return &player{job: j, game: cartPole{rand: tensor.NewGenerator(7).Fork(uint64(rank))}, over: true,
		scope: autograd.NewScope()}
}

// rollOut plays at most horizon steps and returns true if the episode has ended. The next call
// then begins another. The steps replace the experience collected before.
func (p *player) rollOut() bool {
	if p.over {
		p.game.reset()
	}
	p.states, p.actions, p.over = p.states[:0], p.actions[:0], false
	for len(p.actions) < horizon && !p.over {
		logits, _ := p.Net.evaluateState(p.scope, p.game)
		l, action := tensor.Data[float32](logits.T()), int64(0)
		if p.game.rand.Float64() < 1/(1+math.Exp(float64(l[0]-l[1]))) {
			action = 1
		}
		p.scope.Reset()
		p.states, p.actions = append(p.states, p.game.state[:]...), append(p.actions, action)
		p.fell = p.game.step(action)
		p.over = p.fell || p.game.steps == maxReturn
	}
	return p.over
}

// updateNetwork updates the shared network, without a lock, with the experience of the last
// rollOut.
func (p *player) updateNetwork() {
	n := len(p.actions)
	worth := 0.
	if !p.fell {
		_, v := p.Net.evaluateState(p.scope, p.game)
		worth = v.Item()
	}
	returns := make([]float32, n)
	for i := n - 1; i >= 0; i-- {
		worth = 1 + discount*worth
		returns[i] = float32(worth)
	}
	logits, values := p.Net.Forward(p.scope.Const(tensor.FromSlice(p.states, n, 4)))
	target := tensor.FromSlice(returns, n, 1)
	better := autograd.Const(tensor.Sub(target, values.T())) // the advantage
	logp := autograd.LogSoftmax(logits, -1)
	chosen := autograd.Gather(logp, 1, tensor.FromSlice(p.actions, n, 1))
	gain := autograd.Mean(autograd.Mul(chosen, better))
	undecided := autograd.Neg(autograd.Sum(autograd.Mul(autograd.Exp(logp), logp)))
	loss := autograd.MSELoss(values, autograd.Const(target), autograd.ByMean)
	loss = autograd.Sub(autograd.MulScalar(loss, 0.5),
		autograd.Add(gain, autograd.MulScalar(undecided, entropy/float64(n))))
	p.Step.ZeroGrad()
	loss.Backward()
	optim.ClipGradNorm(nn.Params(p.Net), 0.5)
	p.Step.Step()
	p.scope.Reset()
}
