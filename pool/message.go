package pool

import (
	"cmp"
	"time"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A call is the request to a worker: run one function on a chunk of values.
type call struct {
	id   uint64
	fn   string
	n    int     // number of values
	args payload // encoded values

	deadline sys.Deadline // deadline of the caller's context
	local    bool         // the worker is a goroutine of this process; not sent
}

// A reply is the outcome of a call. The first reply of a worker has id 0 and means that the worker
// is ready.
type reply struct {
	id      uint64
	err     error
	index   int           // index of the failed value in its chunk
	took    time.Duration // total duration of the call
	results payload       // encoded results; empty if err is set
}

var (
	callTags  = &codec.Tags{Type: "call", Fields: []int{5}}  // [id, name, count, deadline, payload]
	replyTags = &codec.Tags{Type: "reply", Fields: []int{5}} // [id, index, nanoseconds, error or nil, payload]
)

var errorPlan = must(codec.PlanOf[error]())

func must[T any](v T, err error) T {
	if err != nil {
		panic("pool: " + err.Error())
	}
	return v
}

// MarshalWire encodes the call as [id, name, count, deadline, arguments].
func (c *call) MarshalWire(e *codec.Encoder) error {
	e.Tag(callTags, 0)
	e.Uint(c.id)
	e.String(c.fn)
	e.Uint(uint64(c.n))
	e.Uint(uint64(c.deadline))
	return c.args.MarshalWire(e)
}

// UnmarshalWire decodes a call.
func (c *call) UnmarshalWire(d *codec.Decoder) (err error) {
	if err := d.OnlyTag(callTags); err != nil {
		return err
	}
	if c.id, err = d.Uint(); err != nil {
		return err
	}
	if c.fn, err = d.String(); err != nil {
		return err
	}
	n, err1 := d.Uint()
	deadline, err2 := d.Uint()
	if err := cmp.Or(err1, err2); err != nil {
		return err
	}
	c.n, c.deadline = int(n), sys.Deadline(deadline)
	return c.args.UnmarshalWire(d)
}

// MarshalWire encodes the reply as [id, index, nanoseconds, error, results].
func (r *reply) MarshalWire(e *codec.Encoder) error {
	e.Tag(replyTags, 0)
	e.Uint(r.id)
	e.Uint(uint64(r.index))
	e.Uint(uint64(r.took))
	if r.err == nil {
		e.Nil() // same as errorPlan, but faster
	} else if err := errorPlan.Encode(e, r.err); err != nil {
		return err
	}
	return r.results.MarshalWire(e)
}

// UnmarshalWire decodes a reply.
func (r *reply) UnmarshalWire(d *codec.Decoder) (err error) {
	if err := d.OnlyTag(replyTags); err != nil {
		return err
	}
	if r.id, err = d.Uint(); err != nil {
		return err
	}
	index, err1 := d.Uint()
	took, err2 := d.Uint()
	if err := cmp.Or(err1, err2); err != nil {
		return err
	}
	r.index, r.took = int(index), time.Duration(took)
	if r.err, err = errorPlan.Decode(d); err != nil {
		return err
	}
	return r.results.UnmarshalWire(d)
}
