package bench

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
)

var layers = Suite{
	Name:   "layers",
	Doc:    "layers of transformers and recurrent nets, forwards and with their gradients, in one thread",
	peer:   "torch_layers.py",
	groups: []func(context.Context, *environment) (group, error){passRows},
}

// A pass is a layer with its input. The peer's script must define it under the same name.
type pass struct {
	name    string
	rounds  int
	input   *tensor.Tensor
	module  nn.Module // may be nil
	forward func(x *autograd.Var) *autograd.Var
}

func passRows(_ context.Context, h *environment) (group, error) {
	return group{rounds: 9, cases: passCases(h, "layer_", layerPasses(), processorTime, timesPeer(1/1.5))}, nil
}

func passCases(h *environment, prefix string, passes []pass, time func(rounds int, do func()) *Probe,
	target Target) (cases []Case) {
	for _, p := range passes {
		rounds, slope := h.scaleRounds(p.rounds), p.initialGradient()
		for _, row := range []struct {
			suffix string
			do     func(s *autograd.Scope)
		}{
			{"", func(s *autograd.Scope) { p.forward(s.NoGrad(p.input)) }},
			{"_step", func(s *autograd.Scope) { p.computeGradients(s, slope) }},
		} {
			s := autograd.NewScope()
			cases = append(cases, Case{
				Name: prefix + p.name + row.suffix, Unit: Nanoseconds, Target: target,
				Ours: time(rounds, func() { row.do(s); s.Reset() }),
				Peer: &peerWork{op: p.name + row.suffix, Rounds: rounds},
			})
		}
	}
	return cases
}

// initialGradient returns the initial gradient of the output for backpropagation.
func (p *pass) initialGradient() *tensor.Tensor {
	return tensor.Ones(tensor.Float32, p.forward(autograd.NoGrad(p.input)).Shape()...)
}

// computeGradients computes the gradients of the input and of all parameters. slope is the
// gradient of the output; see [pass.initialGradient]. The caller must reset s afterwards.
func (p *pass) computeGradients(s *autograd.Scope, slope *tensor.Tensor) {
	x := s.Leaf(p.input)
	wanted := []*autograd.Var{x}
	if p.module != nil {
		for param := range nn.Params(p.module) {
			wanted = append(wanted, param.Var())
		}
	}
	y := p.forward(x)
	autograd.Grad([]*autograd.Var{y}, wanted, autograd.GradOptions{GradOutputs: []*autograd.Var{s.Const(slope)}})
}

// A passList builds passes with random inputs.
type passList struct {
	all []pass
	g   *tensor.Generator
}

func (l *passList) add(name string, rounds int, m nn.Module, f func(x *autograd.Var) *autograd.Var, shape ...int) {
	l.all = append(l.all, pass{name, rounds, tensor.RandN(tensor.Float32, l.g, shape...), m, f})
}

// layerPasses returns layers with the sizes of small language models.
func layerPasses() []pass {
	g := tensor.NewGenerator(1)
	l := passList{g: g}
	add := l.add
	norm := nn.NewLayerNorm(512)
	add("norm", 4, norm, norm.Forward, 64, 128, 512)
	add("gelu", 1, nil, autograd.GELU, 64, 128, 2048)
	add("softmax", 2, nil, nn.Softmax.Forward, 64, 8, 128, 128)
	for _, tokens := range []int{128, 512} {
		attend := func(name string, o autograd.Attention) {
			add(fmt.Sprint(name, tokens), 1024/tokens, nil, func(x *autograd.Var) *autograd.Var {
				return autograd.ScaledDotProductAttention(x, x, x, o)
			}, 2, 8, tokens, 64)
		}
		attend("attention_", autograd.Attention{})
		attend("attention_causal_", autograd.Attention{Causal: true})
	}
	for _, hidden := range []int{16, 256} {
		lstm, gru := nn.NewLSTM(hidden, hidden, g, nn.RecurrentOptions{}),
			nn.NewGRU(hidden, hidden, g, nn.RecurrentOptions{})
		add(fmt.Sprint("lstm_", hidden), 256/hidden, lstm, lstm.Forward, 64, 32, hidden)
		add(fmt.Sprint("gru_", hidden), 256/hidden, gru, gru.Forward, 64, 32, hidden)
	}
	encoder := nn.NewTransformerEncoderLayer(256, 8, 1024, 0, g)
	add("encoder", 1, encoder, encoder.Forward, 128, 8, 256)
	return l.all
}
