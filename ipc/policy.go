package ipc

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A Policy says what a put does while the queue is full.
type Policy uint8

// The policies.
const (
	Block      Policy = iota // wait
	Fail                     // return ErrFull
	DropOldest               // drop the oldest value and what it holds of shared memory
)

// String returns the name of the policy.
func (p Policy) String() string {
	switch p {
	case Block:
		return "Block"
	case Fail:
		return "Fail"
	case DropOldest:
		return "DropOldest"
	}
	return fmt.Sprintf("Policy(%d)", uint8(p))
}

// put puts a message, as the queue's policy says.
func (p *port) put(ctx context.Context, m codec.Message, wait bool) (err error) {
	move := len(m.Given) == len(m.Blocks)
	switch {
	case p.policy == DropOldest:
		err = p.putDropping(ctx, m, move)
	case wait && p.policy == Block:
		err = p.ring.Put(ctx, m.Body, m.Blocks, move)
	default:
		err = p.ring.TryPut(m.Body, m.Blocks, move)
	}
	if err == nil && !move {
		for _, h := range m.Given {
			err = errors.Join(err, p.d.Release(h))
		}
	}
	return err
}

// putDropping takes the oldest message out until there is room. It waits only where somebody is in
// the middle of putting or getting that one.
func (p *port) putDropping(ctx context.Context, m codec.Message, move bool) error {
	var old arena.Message
	for {
		err := p.ring.TryPut(m.Body, m.Blocks, move)
		if err != arena.ErrFull {
			return err
		}
		switch err := p.ring.TryGet(&old); {
		case err == nil:
			old.Discard()
		case err == arena.ErrEmpty:
			if err := p.awaitChange(ctx); err != nil {
				return err
			}
		case errors.Is(err, arena.ErrFinished):
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
	}
}

// awaitChange waits until the ring has a message or room.
func (p *port) awaitChange(ctx context.Context) error {
	either, cancel := context.WithCancel(ctx)
	room := make(chan error, 1)
	go func() {
		room <- p.ring.AwaitRoom(either)
		cancel()
	}()
	err := p.ring.Await(either)
	cancel()
	if <-room == nil || err == nil {
		return nil
	}
	return cmp.Or(context.Cause(ctx), err)
}
