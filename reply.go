package shoal

import (
	"fmt"
	"strings"

	"github.com/shoal-mp/shoal/shm"
)

// A reply is what a child has told on the control socket. The goroutine that reads from the socket
// writes the reply. Others read it when that goroutine has ended.
type reply struct {
	member bool // it is a member of the domain, in seat
	seat   int
	begun  bool // it has the argument
	done   bool
	result outcome
	other  string // not empty: the child is of another version, and says so
	err    error  // the reply made no sense
}

// receive takes a control frame of the child.
func (c *child) receive(kind frameKind, body []byte) {
	c.reply.take(kind, body)
	if kind == frameReady {
		c.reply.begun = true
		c.owner.arrived()
	}
}

// take reads a frame.
func (r *reply) take(kind frameKind, body []byte) {
	switch kind {
	case frameReady:
		r.join(body)
	case frameDone:
		r.result, r.err = decode(outcomePlan, body)
		r.done = r.err == nil
	case frameRefused:
		r.other = cut(strings.ToValidUTF8(string(body), "?"))
	default:
		r.err = fmt.Errorf("control frame of unknown kind %d", kind)
	}
}

// refusal is why the child has not begun, if it has said so. It is nil if it has not.
func (r *reply) refusal() error {
	switch {
	case r.other != "":
		return fmt.Errorf("%w: %s", shm.ErrVersion, r.other)
	case r.done && r.result.failed():
		return r.result.err()
	}
	return nil
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
