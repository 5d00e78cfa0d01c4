package arena

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/internal/arena/layout"
)

// A message that does not fit into a slot is written into a block of its own: the number of blocks,
// their handles and the length of the body, 8 bytes each, followed by the body. A get must stamp
// that block last, regardless of its index: only the message's sender and its reader know it.

// spillAndPublish is the rest of [Ring.tryPut] for a message that does not fit into a slot.
func (r *Ring) spillAndPublish(ctx context.Context, body []byte, blocks []Handle, move bool) error {
	if err := r.checkRoom(); err != nil {
		return err // before the message is copied
	}
	h, err := r.d.spillMessage(ctx, body, blocks)
	if err != nil {
		return err
	}
	all := append(append(make([]Handle, 0, len(blocks)+1), blocks...), h)
	moved := all
	if !move {
		moved = all[len(blocks):] // the block of the body always moves with the message
	}
	p := &outgoing{table: all[len(blocks):], blocks: all, flags: layout.MetaSpill, moved: moved}
	if err = r.publish(ctx, p); err != nil {
		r.d.Release(h)
	}
	return err
}

// spillMessage writes the body and the handles of the blocks of a message into a new block. The
// caller holds the block once and must release it or move it. spillMessage returns the errors of
// [Domain.Alloc].
//
// Only the message's sender and its reader know the block of a spilled message, so the block may
// come last in lock order (docs/memory.md, "Operations"): a lane that waits for its stamp holds
// no stamp that the other lane waits for.
func (d *Domain) spillMessage(ctx context.Context, body []byte, blocks []Handle) (Handle, error) {
	h, err := d.allocFor(ctx, 8+8*len(blocks)+8+len(body))
	if err != nil {
		return 0, fmt.Errorf("put message of %d bytes and %d blocks: %w", len(body), len(blocks), err)
	}
	b, err := d.Bytes(h)
	if err == nil && len(b) < 8+8*len(blocks)+8+len(body) {
		err = reportCorruption("the committed length of a block", uint64(len(b)))
	}
	if err != nil {
		return 0, errors.Join(err, d.Release(h))
	}
	p := binary.LittleEndian.AppendUint64(b[:0], uint64(len(blocks)))
	for _, t := range blocks {
		p = binary.LittleEndian.AppendUint64(p, uint64(t))
	}
	p = binary.LittleEndian.AppendUint64(p, uint64(len(body)))
	copy(b[len(p):], body)
	return h, nil
}

// decodeSpill decodes the table and the body of a spilled message in p. The body aliases p, the
// table does not. It returns [ErrCorrupt] if p is too short.
func decodeSpill(p []byte) (blocks []Handle, body []byte, err error) {
	if len(p) < 16 {
		return nil, nil, ErrCorrupt
	}
	n := binary.LittleEndian.Uint64(p)
	if p = p[8:]; n > uint64(len(p)-8)/8 {
		return nil, nil, ErrCorrupt
	}
	for range n {
		blocks = append(blocks, Handle(binary.LittleEndian.Uint64(p)))
		p = p[8:]
	}
	size := binary.LittleEndian.Uint64(p)
	if p = p[8:]; size > uint64(len(p)) {
		return nil, nil, ErrCorrupt
	}
	return blocks, p[:size:size], nil
}
