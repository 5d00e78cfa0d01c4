package manager

import (
	"context"

	"github.com/shoal-mp/shoal/internal/arena"
)

// A beacon tells when the last holder of its token is gone, in whatever process or message, and
// however it died: a ring that carries nothing, of which the token is the sending end.
type beacon struct {
	d    *arena.Domain
	ring *arena.Ring
}

// newBeacon returns a beacon and its token, which the caller holds once.
func newBeacon(d *arena.Domain) (*beacon, arena.Handle, error) {
	ring, senders, receivers, err := d.NewRing(arena.RingOptions{Capacity: 1})
	if err != nil {
		return nil, 0, err
	}
	return &beacon{d, ring}, senders, d.Release(receivers) // nobody receives anything
}

// await returns nil when nobody holds the token any more.
func (b *beacon) await(ctx context.Context) error { return b.ring.Await(ctx) }

func (b *beacon) close() error {
	b.ring.Close()
	return b.d.Release(b.ring.Handle())
}
