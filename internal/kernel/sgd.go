package kernel

// SGD performs one step of gradient descent like torch.optim.SGD. With d = g + weightDecay·p,
// it sets buf to d if first is set, on the first step, and to momentum·buf + (1-dampening)·d on
// later steps. Then it subtracts lr·buf from p, or lr·(d + momentum·buf) if nesterov is set. g
// and buf must be at least as long as p. If momentum is 0, it subtracts lr·d, and buf is not
// used and may be nil.
func SGD[F Float](p, g, buf []F, lr, momentum, dampening, weightDecay F, nesterov, first bool) {
	s := sgd[F]{momentum, dampening, weightDecay, nesterov, first}
	if momentum == 0 {
		buf = p // of the same length; not used
	}
	if workers := elementWorkers(len(p), stepCost); workers > 1 {
		memory := buf // captured instead of the parameter, which would escape to the heap
		runElements(workers, len(p), func(lo, hi int) { s.descend(p[lo:hi], g[lo:hi], memory[lo:hi], lr) })
	} else {
		s.descend(p, g, buf, lr)
	}
}

// descend performs the step of [SGD] for p on the calling goroutine.
func (s sgd[F]) descend(p, g, buf []F, lr F) {
	weightDecay := s.weightDecay
	g = g[:len(p)]
	if s.momentum == 0 {
		for i, v := range p {
			p[i] = v - lr*(g[i]+weightDecay*v)
		}
		return
	}
	buf = buf[:len(p)]
	if s.nesterov {
		for i, v := range p {
			p[i] = v - lr*s.stepDirection(v, g[i], &buf[i])
		}
		return
	}
	take := 1 - s.dampening
	if s.first {
		clear(buf)
		take = 1
	}
	for i, n := range shortPieces(len(p)) {
		loopsFor[F]().descend(n, &p[i], &g[i], &buf[i], lr, weightDecay, s.momentum, take)
	}
}

// SGDAtomic is [SGD] for parameters that other goroutines or processes may change concurrently by
// SGDAtomic or [AxpyAtomic]. Each element is read atomically, and the step is added to it
// atomically, so no step is lost. g and buf must not be shared.
func SGDAtomic[F Float](p, g, buf []F, lr, momentum, dampening, weightDecay F, nesterov, first bool) {
	s := sgd[F]{momentum, dampening, weightDecay, nesterov, first}
	g = g[:len(p)]
	if momentum == 0 {
		buf = nil
	} else {
		buf = buf[:len(p)]
	}
	var none F
	for i := range p {
		b := &none
		if buf != nil {
			b = &buf[i]
		}
		var v F
		if weightDecay != 0 {
			v = loadAtomic(&p[i])
		}
		addAtomic(&p[i], -lr*s.stepDirection(v, g[i], b))
	}
}

// sgd holds the values that are the same for all elements of a step.
type sgd[F Float] struct {
	momentum, dampening, weightDecay F
	nesterov, first                  bool
}

// stepDirection returns the direction of the step for parameter p with gradient g, and updates
// *buf.
func (s sgd[F]) stepDirection(p, g F, buf *F) F {
	d := g + s.weightDecay*p
	if s.momentum == 0 {
		return d
	}
	if s.first {
		*buf = d
	} else {
		*buf = s.momentum**buf + (1-s.dampening)*d
	}
	if s.nesterov {
		return d + s.momentum**buf
	}
	return *buf
}
