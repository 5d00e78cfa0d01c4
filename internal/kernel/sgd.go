package kernel

// SGD takes one step of gradient descent, as torch.optim.SGD does: with d = g + weightDecay·p, buf
// becomes d on the first step and momentum·buf + (1-dampening)·d on later ones, and p loses lr·buf,
// or lr·(d + momentum·buf) if nesterov. buf is not used, and may be nil, if momentum is 0.
func SGD[F Float](p, g, buf []F, lr, momentum, dampening, weightDecay F, nesterov, first bool) {
	s := sgd[F]{momentum, dampening, weightDecay, nesterov, first}
	g = g[:len(p)]
	if momentum == 0 {
		for i, v := range p {
			p[i] = v - lr*(g[i]+weightDecay*v)
		}
		return
	}
	buf = buf[:len(p)]
	if nesterov {
		for i, v := range p {
			p[i] = v - lr*s.direction(v, g[i], &buf[i])
		}
		return
	}
	take := 1 - dampening
	if first {
		clear(buf)
		take = 1
	}
	for i, n := range short(len(p)) {
		inner[F]().descend(n, &p[i], &g[i], &buf[i], lr, weightDecay, momentum, take)
	}
}

// SGDAtomic is [SGD] for parameters that other goroutines or processes change at the same time by
// SGDAtomic or [AxpyAtomic]: each element is read atomically, and the step is added to it
// atomically, so that no step is lost. g and buf belong to the caller alone.
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
		addAtomic(&p[i], -lr*s.direction(v, g[i], b))
	}
}

// sgd is what stays the same for all elements of a step.
type sgd[F Float] struct {
	momentum, dampening, weightDecay F
	nesterov, first                  bool
}

// direction is what the parameter p with gradient g is moved along; it moves buf.
func (s sgd[F]) direction(p, g F, buf *F) F {
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
