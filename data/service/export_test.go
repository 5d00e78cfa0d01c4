package service

import (
	"context"

	"github.com/shoal-mp/shoal/data/internal/maker"
)

// Read asks for a portion of a Stream, whatever the data hosts serve, and reports whether there are
// samples in it.
func Read(ctx context.Context, l *Loader, p maker.Portion) (some bool, err error) {
	r := stream{l.client}.Reader()
	defer r.Close()
	b, err := r.Read(ctx, p)
	b.Close()
	return b.Read > 0, err
}

// SetVersion has a host say that it has another version of the protocol, until the result is
// called.
func SetVersion(h *Host, v int) func() {
	old := h.hello
	var said hello
	if err := said.decode(old); err != nil {
		panic(err)
	}
	said.Version = v
	b, err := said.encode()
	if err != nil {
		panic(err)
	}
	h.hello = b
	return func() { h.hello = old }
}
