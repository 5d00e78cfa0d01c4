package manager

import (
	"context"
	"math"
	"time"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/ipc"
)

// A request is one call of a method of an object in the server, by the object's id. Object 0 is
// the server itself.
type request struct {
	Object uint64
	Method string
	Owner  uint64 // calling proxy, for locks that are owned by proxies
	Args   []item

	// Left is the time until the deadline of the caller's context, or 0. It is sent for methods
	// that have a context. A duration is valid on other machines too.
	Left time.Duration
}

// A reply is the outcome of a request.
type reply struct {
	Err     error
	Results []item
}

var (
	// [object, method, owner, [argument …]], or the same and the time left
	requestTags = &codec.Tags{Type: "request", Fields: []int{4, 5}}
	replyTags   = &codec.Tags{Type: "reply", Fields: []int{2}} // [error or nil, [result …]]
)

// MarshalWire encodes the request as [object, method, owner, arguments], and the time left if there
// is a deadline.
func (r *request) MarshalWire(e *codec.Encoder) error {
	tag := 0
	if r.Left > 0 {
		tag = 1
	}
	e.Tag(requestTags, tag)
	e.Uint(r.Object)
	e.String(r.Method)
	e.Uint(r.Owner)
	err := writeItems(e, r.Args)
	if err == nil && tag == 1 {
		e.Uint(uint64(r.Left))
	}
	return err
}

// UnmarshalWire decodes a request.
func (r *request) UnmarshalWire(d *codec.Decoder) (err error) {
	tag, err := d.Tag(requestTags)
	if err != nil {
		return err
	}
	r.Left = 0
	if r.Object, err = d.Uint(); err != nil {
		return err
	}
	if r.Method, err = d.String(); err != nil {
		return err
	}
	if r.Owner, err = d.Uint(); err != nil {
		return err
	}
	if r.Args, err = readItems(d); err != nil || tag == 0 {
		return err
	}
	left, err := d.Uint()
	r.Left = time.Duration(min(left, math.MaxInt64))
	return err
}

var errorPlan = must(codec.PlanOf[error]())

func must[T any](v T, err error) T {
	if err != nil {
		panic("manager: " + err.Error())
	}
	return v
}

// MarshalWire encodes the reply as [error, results].
func (r *reply) MarshalWire(e *codec.Encoder) error {
	e.Tag(replyTags, 0)
	if r.Err == nil {
		e.Nil() // same as errorPlan, but faster
	} else if err := errorPlan.Encode(e, r.Err); err != nil {
		return err
	}
	return writeItems(e, r.Results)
}

// UnmarshalWire decodes a reply.
func (r *reply) UnmarshalWire(d *codec.Decoder) (err error) {
	if err := d.OnlyTag(replyTags); err != nil {
		return err
	}
	if !d.IsNil() {
		if r.Err, err = errorPlan.Decode(d); err != nil {
			return err
		}
	}
	r.Results, err = readItems(d)
	return err
}

func writeItems(e *codec.Encoder, items []item) error {
	if items == nil {
		e.Nil()
		return nil
	}
	e.ArrayLen(len(items))
	for i := range items {
		if err := items[i].MarshalWire(e); err != nil {
			return err
		}
	}
	return nil
}

// readItems decodes a list of items, or nil. The items own references to their blocks, and the
// caller must release them. ArrayLen bounds their number, because each item takes at least one
// byte of the message.
func readItems(d *codec.Decoder) ([]item, error) {
	if d.IsNil() {
		return nil, nil
	}
	n, err := d.ArrayLen()
	if err != nil {
		return nil, err
	}
	var items []item
	if n <= few {
		items = make([]item, 0, n)
	}
	for range n {
		var it item
		if err := it.UnmarshalWire(d); err != nil {
			return nil, err
		}
		items = append(items, it)
	}
	return items, nil
}

// few limits the number of items that are allocated before they are decoded.
const few = 64

// cancel is the method of a request without a reply. It cancels the call in progress on the lane,
// if that call is blocked.
const cancel = "cancel"

// A hello announces a lane to the server. It is sent once per lane, in the ring that receives
// hellos.
type hello struct {
	Session [16]byte // identifies the process; the last lane releases its locks
	PID     int
	Lane    *ipc.PipeEnd[reply, request]
}

// A lane is a bidirectional connection between a client and a server for calls, one at a time. A
// client sends requests and receives replies. It is an *[ipc.PipeEnd] within a machine, and a
// stream between machines.
type lane[S, R any] interface {
	Send(ctx context.Context, v S) error
	Recv(ctx context.Context) (R, error)
	Close() error
}
