package pool

// Workers returns how many workers the pool has.
func (p *Pool) Workers() int { return p.opts.Workers }
