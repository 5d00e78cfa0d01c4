package shoal

import "fmt"

// A reply is what a child has told on the control socket. The goroutine that reads from the socket
// writes the reply. Others read it when that goroutine has ended.
type reply struct {
	member bool // it is a member of the domain, in seat
	seat   int
	begun  bool // it has the argument
	done   bool
	result outcome
	err    error // the reply made no sense
}

// receive takes a control frame of the child.
func (c *child) receive(kind frameKind, body []byte) {
	switch kind {
	case frameReady:
		c.reply.join(body)
		c.reply.begun = true
		c.owner.arrived()
	case frameDone:
		c.reply.result, c.reply.err = decode(outcomePlan, body)
		c.reply.done = c.reply.err == nil
	default:
		c.reply.err = fmt.Errorf("control frame of unknown kind %d", kind)
	}
}

// unused reports whether the child died before it had its job, so that the function has not begun.
// If the child had been waiting for a job, this is no failure of the function.
func (c *child) unused() bool { return c.warm && !c.reply.begun && !c.reply.done }

// join notes the seat in the domain.
func (r *reply) join(body []byte) {
	var m ready
	if m, r.err = decode(readyPlan, body); r.err == nil {
		r.member, r.seat = true, m.Seat
	}
}
