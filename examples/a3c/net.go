package main

import (
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
)

// An actorCritic is a network that computes the logits of the actions (policy) and the value of
// a state.
type actorCritic struct{ Hidden, Policy, Value *nn.Linear }

func (n *actorCritic) Forward(x *autograd.Var) (logits, value *autograd.Var) {
	h := autograd.ReLU(n.Hidden.Forward(x))
	return n.Policy.Forward(h), n.Value.Forward(h)
}

// evaluateState returns the logits of the actions and the value for the state of one game,
// without recording gradients. The results are valid until s is reset.
func (n *actorCritic) evaluateState(s *autograd.Scope, game cartPole) (logits, value *autograd.Var) {
	return n.Forward(s.NoGrad(tensor.FromSlice(game.state[:], 1, 4)))
}
