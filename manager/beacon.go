package manager

import (
	"context"

	"github.com/shoal-mp/shoal/internal/arena"
)

// A beacon detects that a token has no more holders in any process or message, however they
// ended. It is a ring that carries no messages; the token is its sending end. The process that
// made it must close it.
type beacon struct {
	d    *arena.Domain
	ring *arena.Ring
}

// newBeacon returns a beacon and its token. The caller must close the beacon, and owns one
// reference to the token.
func newBeacon(d *arena.Domain) (*beacon, arena.Handle, error) {
	ring, senders, receivers, err := d.NewRing(arena.RingOptions{Capacity: 1})
	if err != nil {
		return nil, 0, err
	}
	return &beacon{d, ring}, senders, d.Release(receivers) // the ring carries no messages
}

// awaitRelease blocks until the token has no more holders, and then returns nil. If ctx is done
// first, it returns its error.
func (b *beacon) awaitRelease(ctx context.Context) error { return b.ring.Await(ctx) }

func (b *beacon) close() error {
	b.ring.Close()
	return b.d.Release(b.ring.Handle())
}
