package autograd_test

import (
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

type (
	variable = *autograd.Var
	function = func(in ...variable) variable
	caller   = func(f function, in ...variable) variable
)

// What a Checkpoint calls in a scope computes what it computes in fresh memory, whatever it returns
// and uses, in each step, and in walks of each kind.
func TestCheckpoint_InAScopeIsWhatItIsInFreshMemory(t *testing.T) {
	w := autograd.NewParam("w", values(4, 1, 4, 4))
	functions := map[string]function{
		"a result of its own":   func(in ...variable) variable { return autograd.Sin(autograd.Mul(in[0], in[1])) },
		"a result that is lent": func(in ...variable) variable { return autograd.Linear(in[0], in[1], nil) },
		"its input":             func(in ...variable) variable { return in[1] },
		"a view of its input":   func(in ...variable) variable { return autograd.Transpose(in[1], 0, 1) },
		"a view of what it makes": func(in ...variable) variable {
			return autograd.Transpose(autograd.Exp(in[1]), 0, 1)
		},
		"another shape": func(in ...variable) variable {
			return autograd.Reshape(autograd.Linear(in[0], in[1], nil), 2, 8)
		},
		"a parameter": func(in ...variable) variable { return w.Var() },
		"a use of a parameter": func(in ...variable) variable {
			return autograd.Mul(w.Var(), autograd.Tanh(in[0]))
		},
		"a part": func(in ...variable) variable {
			return autograd.Split(autograd.Exp(in[0]), 2, 0)[1]
		},
		"what has no gradient": func(in ...variable) variable { return autograd.Exp(in[0].Detach()) },
		"more than one derivative": func(in ...variable) variable {
			return autograd.Softmax(autograd.Pow(in[0], 3), 1)
		},
		"a value that it takes out of its graph": func(in ...variable) variable {
			h := autograd.Exp(in[0])
			still := autograd.Mul(w.Var(), autograd.Const(autograd.Exp(h).T()))
			return autograd.Add(autograd.Mul(in[1], in[0]), autograd.Mul(still, autograd.Const(h.T())))
		},
		"another checkpoint": func(in ...variable) variable {
			inside := func(in ...variable) variable { return autograd.Tanh(autograd.Mul(in[1], autograd.Sin(in[0]))) }
			h := autograd.Checkpoint(inside, in[0], in[1])
			return autograd.Add(autograd.Checkpoint(inside, autograd.Exp(h), in[1]), h)
		},
		"a derivative": func(in ...variable) variable {
			x := autograd.Sin(in[0])
			return autograd.Grad(vars{autograd.Sum(autograd.Pow(x, 3))}, vars{x}, again)[0]
		},
	}
	walks := map[string]func(y, x variable){
		"Backward":       func(y, x variable) { y.Backward() },
		"Backward twice": func(y, x variable) { y.BackwardWith(retain); y.Backward() },
		"Grad": func(y, x variable) {
			accumulate(x, autograd.Grad(vars{y}, vars{x}, autograd.GradOptions{})[0])
		},
		"Grad, derived too": func(y, x variable) {
			dx := autograd.Grad(vars{y}, vars{x}, again)[0]
			autograd.Sum(autograd.Add(autograd.Mul(dx, dx), y)).Backward()
		},
	}
	for name, f := range functions {
		for kind, walk := range walks {
			steps := func(s *autograd.Scope, call caller) (all []*tensor.Tensor) {
				for i := range 4 {
					w.Grad = nil
					x := s.Leaf(values(5+i, 0.7, 4, 4))
					// The second input is all that the first one is used by, so a walk comes to
					// what is behind it before it is through with the function.
					b := autograd.Exp(autograd.Exp(autograd.MulScalar(x, 0.3)))
					h := call(f, call(functions["a result of its own"], b, x), autograd.Sin(b))
					y := autograd.Add(autograd.Mul(h, h), autograd.MulScalar(h, 0.3))
					all = append(all, h.T().Clone())
					walk(autograd.Add(autograd.Sum(y), autograd.Sum(x)), x)
					for _, g := range []*tensor.Tensor{x.Grad(), w.Grad} {
						if g == nil {
							g = tensor.New(tensor.Float64)
						}
						all = append(all, g.Clone())
					}
					if s != nil {
						s.Reset()
					}
				}
				return all
			}
			want := steps(nil, func(f function, in ...variable) variable { return f(in...) })
			for where, s := range map[string]*autograd.Scope{"fresh": nil, "scope": autograd.NewScope()} {
				for i, got := range steps(s, autograd.Checkpoint) {
					if !tensor.AllClose(got, want[i], 1e-12, 1e-12) {
						t.Errorf("%s of %s in memory of %s: result %d of step %d is %v, want %v", kind, name, where,
							i%3, i/3, got, want[i])
					}
				}
			}
		}
	}
}

// accumulate adds to the Grad of a Leaf what Grad returned for it.
func accumulate(x, dx variable) {
	autograd.Sum(autograd.Mul(x, autograd.Const(dx.T().Clone()))).Backward()
}

// The functions of a step use the same memory one after another.
func TestCheckpoint_InAScopeLendsOneFunctionsMemoryToTheNext(t *testing.T) {
	s := autograd.NewScope()
	var inside []*tensor.Tensor
	var seen vars
	f := func(in ...variable) variable {
		h := autograd.LogSoftmax(in[0], 1)
		inside, seen = append(inside, h.T()), append(seen, h)
		return autograd.Sin(h)
	}
	x := s.Leaf(values(1, 1, 3, 4))
	y := autograd.Sum(autograd.Checkpoint(f, autograd.Checkpoint(f, x)))
	for i := range 2 {
		if inside[i] != inside[0] {
			t.Errorf("call %d has memory of its own", i)
		}
		if seen[i].T() != nil {
			t.Errorf("a value of call %d still has a tensor that is lent to others", i)
		}
	}
	y.Backward()
	if inside[2] != inside[0] || inside[3] != inside[0] || seen[3].T() != nil {
		t.Error("the walk keeps what functions computed on the way")
	}
}

// A function that panics leaves its scope to Reset.
func TestCheckpoint_AfterAPanicTheScopeGoesOn(t *testing.T) {
	s := autograd.NewScope()
	var fail bool
	f := func(in ...variable) variable {
		h := autograd.Exp(in[0])
		if fail {
			panic("the function fails")
		}
		return autograd.Sin(h)
	}
	want := autograd.Leaf(values(1, 1, 3))
	autograd.Sum(f(want)).Backward()
	for i := range 6 {
		x := s.Leaf(values(1, 1, 3))
		fail = i%3 == 1
		step := func() variable { return autograd.Sum(autograd.Checkpoint(f, x)) }
		if fail {
			mustPanic(t, "the function fails", func() { step() })
		} else {
			y := step()
			if fail = i%3 == 2; fail {
				mustPanic(t, "the function fails", y.Backward)
			} else if y.Backward(); !tensor.Equal(x.Grad(), want.Grad()) {
				t.Errorf("step %d: %v, want %v", i, x.Grad(), want.Grad())
			}
		}
		s.Reset()
	}
}

// A hook may walk another graph of the scope while a walk is under way.
func TestScope_AHookWalksWhileAWalkIsUnderWay(t *testing.T) {
	steps := func(s *autograd.Scope) (all []*tensor.Tensor) {
		for i := range 3 {
			x, y := s.Leaf(values(1+i, 1, 3)), s.Leaf(values(2+i, 1, 3))
			h := autograd.Exp(x)
			h.RegisterHook(func(g variable) variable {
				z := autograd.Sum(autograd.Mul(autograd.Add(autograd.Exp(y), autograd.Sin(y)), y))
				z.BackwardWith(retain)
				return autograd.Add(g, s.Const(autograd.Grad(vars{z}, vars{y}, autograd.GradOptions{})[0].T()))
			})
			autograd.Sum(autograd.Add(autograd.Mul(autograd.Sin(x), h), autograd.Tanh(x))).Backward()
			all = append(all, x.Grad(), y.Grad())
			if s != nil {
				s.Reset()
			}
		}
		return all
	}
	want := steps(nil)
	for i, got := range steps(autograd.NewScope()) {
		if !tensor.Equal(got, want[i]) {
			t.Errorf("gradient %d of step %d: %v, want %v", i%2, i/2, got, want[i])
		}
	}
}

// A slice that a scope has lent shows that it has ended, and appending to it changes no other.
func TestScope_SlicesEndWithTheirValues(t *testing.T) {
	s := autograd.NewScope()
	x := s.Leaf(values(1, 1, 4))
	y := autograd.Sum(autograd.Exp(x))
	parts, derivatives := autograd.Split(x, 2, 0), autograd.Grad(vars{y}, vars{x}, autograd.GradOptions{})
	_ = append(parts, nil)
	if derivatives[0] == nil {
		t.Error("appending to a slice has changed another one")
	}
	s.Reset()
	if parts[0] != nil || parts[1] != nil || derivatives[0] != nil {
		t.Error("a stale slice has values")
	}
}
