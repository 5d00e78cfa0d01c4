package manager

import (
	"context"

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

// cancel is the method of a request that has no reply: it ends the wait of the call that is going on, if it waits.
const cancel = "cancel"

// A hello is the first message of a lane.
type hello struct {
	Session [16]byte // of the process: what it holds is let go of when its last lane ends
	PID     int
	Lane    *ipc.Duplex[reply, request]
}

// A lane carries one call at a time: an *ipc.Duplex in one machine, a stream between two.
type lane[S, R any] interface {
	Send(ctx context.Context, v S) error
	Recv(ctx context.Context) (R, error)
	Close() error
}
