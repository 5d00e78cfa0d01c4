package shoal

import (
	"fmt"
	"strings"

	"github.com/shoal-mp/shoal/shm"
)

// A reply is the state that a child has reported on the control socket. Only the goroutine that
// reads the socket writes it. Others may read it after that goroutine has ended.
type reply struct {
	member bool // whether it has joined the domain, in seat
	seat   int
	begun  bool // whether it has decoded the argument
	done   bool
	result outcome
	other  string // message of a child with another version, or empty
	err    error  // error of a malformed reply
}

// handleFrame handles a control frame that the child has sent, on the goroutine that reads its
// control socket. c must have an owner.
func (c *child) handleFrame(kind frameKind, body []byte) {
	c.reply.decodeFrame(kind, body)
	if kind == frameReady {
		c.reply.begun = true
		c.owner.markArgReceived()
	}
}

// decodeFrame records a control frame of the child in r. If it is malformed or unknown, it sets
// r.err.
func (r *reply) decodeFrame(kind frameKind, body []byte) {
	switch kind {
	case frameReady:
		r.recordSeat(body)
	case frameDone:
		r.result, r.err = decodeControl(outcomePlan, body)
		r.done = r.err == nil
	case frameRefused:
		r.other = truncateText(strings.ToValidUTF8(string(body), "?"))
	default:
		r.err = fmt.Errorf("control frame has unknown kind %d", kind)
	}
}

// refusalError returns the reason reported by a child that could not start its function, or nil
// if it has reported none. It wraps shm.ErrVersion if the child is of another version.
func (r *reply) refusalError() error {
	switch {
	case r.other != "":
		return fmt.Errorf("%w: %s", shm.ErrVersion, r.other)
	case r.done && r.result.isFailed():
		return r.result.outcomeError()
	}
	return nil
}

// endedUnused reports whether a child that waited for a job died before it got one. This is not a
// failure of the function.
func (c *child) endedUnused() bool { return c.warm && !c.reply.begun && !c.reply.done }

// recordSeat records the seat of the child in the domain from the body of a ready frame. If it
// is malformed, it sets r.err.
func (r *reply) recordSeat(body []byte) {
	var m ready
	if m, r.err = decodeControl(readyPlan, body); r.err == nil {
		r.member, r.seat = true, m.Seat
	}
}
