package ipc

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A Policy determines the behavior of a put while the queue is full.
type Policy uint8

// Policies of [QueueOptions].
const (
	Block      Policy = iota // wait for a free slot
	Fail                     // return ErrFull
	DropOldest               // discard the oldest value and its shared memory
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

// sendByPolicy puts a message according to the queue's policy, and returns the errors of package
// arena. If wait is true and the policy is [Block], it blocks while the queue is full. wait is
// false for TryPut: then a full queue is arena.ErrFull, except with [DropOldest]. If it
// succeeds, the references that the message gives away, m.Given, are handed over or released.
func (p *port) sendByPolicy(ctx context.Context, m codec.Message, wait bool) (err error) {
	move := len(m.Given) == len(m.Blocks)
	switch {
	case p.policy == DropOldest:
		err = p.dropOldest(ctx, m, move)
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

// dropOldest puts the message, and discards the oldest queued messages while the queue is full.
// It blocks only while another process is in the middle of putting or getting the oldest
// message. move means that the ring takes over the caller's references to the message's blocks
// instead of adding its own.
func (p *port) dropOldest(ctx context.Context, m codec.Message, move bool) error {
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

// awaitChange blocks until the ring has a message or a free slot, and then returns nil. If ctx
// is done first, it returns the cause of ctx.
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
