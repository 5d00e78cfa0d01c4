package manager

import (
	"context"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/ipc"
)

// A request is one call. Object 0 is the server itself.
type request struct {
	Object uint64
	Method string
	Owner  uint64 // the proxy that calls, for what is owned by proxies
	Args   []item
}

// A reply is what came of it.
type reply struct {
	Err     error
	Results []item
}

var (
	requestTags = &codec.Tags{Type: "request", Fields: []int{4}} // [object, method, owner, [argument …]]
	replyTags   = &codec.Tags{Type: "reply", Fields: []int{2}}   // [error or nil, [result …]]
)

// MarshalWire writes [object, method, owner, arguments].
func (r *request) MarshalWire(e *codec.Encoder) error {
	e.Tag(requestTags, 0)
	e.Uint(r.Object)
	e.String(r.Method)
	e.Uint(r.Owner)
	return writeItems(e, r.Args)
}

// UnmarshalWire is the counterpart of MarshalWire.
func (r *request) UnmarshalWire(d *codec.Decoder) (err error) {
	if err := d.OnlyTag(requestTags); err != nil {
		return err
	}
	if r.Object, err = d.Uint(); err != nil {
		return err
	}
	if r.Method, err = d.String(); err != nil {
		return err
	}
	if r.Owner, err = d.Uint(); err != nil {
		return err
	}
	r.Args, err = readItems(d)
	return err
}

var errorPlan = must(codec.PlanOf[error]())

func must[T any](v T, err error) T {
	if err != nil {
		panic("manager: " + err.Error())
	}
	return v
}

// MarshalWire writes [error, results].
func (r *reply) MarshalWire(e *codec.Encoder) error {
	e.Tag(replyTags, 0)
	if r.Err == nil {
		e.Nil() // what the plan does with it, sooner
	} else if err := errorPlan.Encode(e, r.Err); err != nil {
		return err
	}
	return writeItems(e, r.Results)
}

// UnmarshalWire is the counterpart of MarshalWire.
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

// readItems reads items that hold their blocks. Each is one byte of the message at least, so what
// is announced is there.
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

// few is for how many items memory is taken before they were read.
const few = 64

// cancel is the method of a request that has no reply: it ends the wait of the call that is going
// on, if it waits.
const cancel = "cancel"

// A hello is the first message of a lane.
type hello struct {
	Session [16]byte // of the process: what it holds is let go of when its last lane ends
	PID     int
	Lane    *ipc.PipeEnd[reply, request]
}

// A lane carries one call at a time: an *ipc.PipeEnd in one machine, a stream between two.
type lane[S, R any] interface {
	Send(ctx context.Context, v S) error
	Recv(ctx context.Context) (R, error)
	Close() error
}
