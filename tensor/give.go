package tensor

import (
	"github.com/shoal-mp/shoal/internal/codec"
)

// Note [Giving] A message holds a reference to each block that it carries. A sender that puts a
// tensor and closes it acquires a reference for the message and then drops its own. If the tensor
// has this process's only reference to the block, the reference can be transferred to the message:
// the sender then does not touch the block's header, which is in the receiver's CPU cache by then.
//
// While the message is in flight, the storage has a generation that no tensor knows, and it cannot
// be found by its block. Therefore other users of the tensor find it closed, and a message that
// arrives with the same block creates another storage with its own reference. If the message is not
// sent, the tensor gets a storage as if it had been received: the block's current storage, or a new
// one.

// Give marks t to be transferred by the next message that contains it: t is closed when the message
// is sent, as by [Tensor.Close]. This applies to Put, Send and all other functions that send
// values. If the message is not sent, t stays open and the caller still owns it, so a deferred
// Close is correct in both cases.
//
//	err := q.Put(ctx, t.Give())
//
// Giving is faster than closing afterwards if t is this process's last tensor over its storage. t
// must not be used until the sending call returns. Give returns t.
func (t *Tensor) Give() *Tensor {
	t.given = true
	return t
}

// marshalGiven encodes t and returns true if its reference to the block can be transferred to the
// message, or was transferred by an earlier part of this message. Otherwise it writes nothing and
// returns false.
func (t *Tensor) marshalGiven(e *codec.Encoder) bool {
	s := t.storage.Load()
	if s == nil {
		return false
	}
	block := (*codec.Encoder).Block
	switch {
	case s.giver == t && e.Watches((*transfer)(s)):
	case t.given && e.Moves && t.detachStorage(s):
		block = (*codec.Encoder).Give
		e.OnDone((*transfer)(s))
	default:
		return false
	}
	e.Tag(wireTags, inBlock)
	e.Uint(uint64(t.dtype))
	block(e, s.given)
	t.writeLayout(e)
	return true
}

// detachStorage detaches s, the storage of t, and its reference to the block from t. It returns
// false and changes nothing unless t has this process's only reference to the block.
func (t *Tensor) detachStorage(s *Storage) bool {
	l, ok := s.mem.Load().block()
	if !ok || l.unlock != nil || s.onClose.Load() != nil || l.check() != nil {
		return false
	}
	generation := uint64(t.generation)<<generationBits | 1
	if !s.uses.CompareAndSwap(generation, generation-1+1<<generationBits) {
		return false
	}
	t.given, s.giver = false, t
	s.given = l.block
	s.markShared()
	l.detachBlock()
	return true
}

// A transfer is a storage that transfers its reference to a message.
type transfer Storage

// Done closes the tensor if the message was sent, and returns the block to it otherwise. The
// encoder calls it once.
func (g *transfer) Done(sent bool) {
	s := (*Storage)(g)
	t := s.giver
	s.giver = nil
	if sent {
		t.storage.CompareAndSwap(s, nil)
		s.returnFormer()
		spares.Put(s)
		return
	}
	if again, err := adoptBlock(s.own.domain, s.given); err != nil { // this process has left the domain
		t.storage.CompareAndSwap(s, nil)
	} else {
		t.generation = again.generation()
		if !t.storage.CompareAndSwap(s, again) { // closed concurrently, too early
			again.release()
		}
	}
	spares.Put(s)
}

// A sharedTransfer is a given tensor that keeps its reference: the message has its own, because
// this process has another tensor over the block or the message goes to another destination.
type sharedTransfer Tensor

// Done closes the tensor if the message was sent.
func (p *sharedTransfer) Done(sent bool) {
	p.given = false
	if sent {
		(*Tensor)(p).Close()
	}
}
