package tensor

import (
	"github.com/shoal-mp/shoal/internal/codec"
)

// Note [Giving] A message counts as a holder of each block that it carries, so a sender that puts a
// tensor and closes it takes a reference for the message and then drops its own. Where the tensor
// is all that this process has of the block, its reference can go with the message: the sender does
// not touch the block's header any more, which is in its receiver's cache by then.
//
// While the message is under way the storage is in no life of which a tensor knows, and is not
// found by its block. So what else uses the tensor meanwhile finds it closed, and a message that
// arrives with the same block makes another storage, which has a reference of its own. If the
// message is not sent, the tensor gets what a tensor gets that arrives: the storage that has the
// block by then, or a new one.

// Give says that the next message that is sent with t takes it: t is closed then, as by Close. Put,
// Send and all else that sends values sends such a tensor. If the message is not sent, t stays open
// and is the caller's, so a deferred Close is right in both cases.
//
//	err := q.Put(ctx, t.Give())
//
// To give is quicker than to close afterwards, where t is this process's last tensor of its
// storage. Until the call that sends it returns, t is not to be used. Give returns t.
func (t *Tensor) Give() *Tensor {
	t.given = true
	return t
}

// marshalGiven is marshal of a tensor that is given and whose reference can go with the message, or
// has gone with what was written of it before. It returns false, and has written nothing, where
// that is not so.
func (t *Tensor) marshalGiven(e *codec.Encoder) bool {
	s := t.storage.Load()
	if s == nil {
		return false
	}
	block := (*codec.Encoder).Block
	switch {
	case s.giver == t && e.Watches((*gift)(s)):
	case t.given && e.Moves && t.give(s):
		block = (*codec.Encoder).Give
		e.OnDone((*gift)(s))
	default:
		return false
	}
	e.Tag(wireTags, inBlock)
	e.Uint(uint64(t.dtype))
	block(e, s.given)
	t.writeLayout(e)
	return true
}

// give takes s, the storage of t, and the block's reference with it out of t, if t is all that this
// process has of the block. Otherwise it returns false and changes nothing.
func (t *Tensor) give(s *Storage) bool {
	l, ok := s.mem.Load().block()
	if !ok || l.unlock != nil || s.onClose.Load() != nil || l.check() != nil {
		return false
	}
	life := uint64(t.life)<<lifeBits | 1
	if !s.life.CompareAndSwap(life, life-1+1<<lifeBits) {
		return false
	}
	t.given, s.giver = false, t
	s.given = l.block
	l.part()
	return true
}

// A gift is a storage whose reference goes with a message that is written.
type gift Storage

// Done ends the tensor that gave it, or gives it the block again that was not sent.
func (g *gift) Done(sent bool) {
	s := (*Storage)(g)
	t := s.giver
	s.giver = nil
	if sent {
		t.storage.CompareAndSwap(s, nil)
		spares.Put(s)
		return
	}
	if again, err := adopt(s.own.domain, s.given); err != nil { // the domain was left meanwhile
		t.storage.CompareAndSwap(s, nil)
	} else {
		t.life = again.number()
		if !t.storage.CompareAndSwap(s, again) { // somebody has closed it, too early
			again.release()
		}
	}
	spares.Put(s)
}

// A parting is a tensor that is given with a message that holds the block by a reference of its
// own, since this process has another tensor of it, or since the message goes elsewhere.
type parting Tensor

// Done closes the tensor if the message was sent.
func (p *parting) Done(sent bool) {
	p.given = false
	if sent {
		(*Tensor)(p).Close()
	}
}
