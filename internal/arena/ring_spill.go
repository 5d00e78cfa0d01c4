package arena

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
)

// A message that does not fit into a slot is written into a block of its own: the number of blocks,
// their handles, the length of the body, all 8 bytes, and the body. A get stamps that block last,
// whatever its index: only the message's sender and its reader know it.

func (r *Ring) putSpilled(ctx context.Context, body []byte, blocks []Handle, move bool) error {
	if err := r.room(); err != nil {
		return err // before the copy
	}
	h, err := r.d.spill(ctx, body, blocks)
	if err != nil {
		return err
	}
	all := append(append(make([]Handle, 0, len(blocks)+1), blocks...), h)
	moved := all
	if !move {
		moved = all[len(blocks):] // the block of the body always moves with the message
	}
	if err = r.put(ctx, &parcel{table: all[len(blocks):], blocks: all, flags: metaSpill, moved: moved}); err != nil {
		r.d.Release(h)
	}
	return err
}

// spill writes the body and the table of a message into a block, which the caller holds.
//
// The block of a spilled message is known to its sender and its reader alone, so it may come last
// in lock order (docs/memory.md, "Operations"): a lane that waits for its stamp holds no stamp for
// which the other one waits.
func (d *Domain) spill(ctx context.Context, body []byte, blocks []Handle) (Handle, error) {
	h, err := d.allocFor(ctx, 8+8*len(blocks)+8+len(body))
	if err != nil {
		return 0, fmt.Errorf("put a message of %d bytes and %d blocks: %w", len(body), len(blocks), err)
	}
	b, err := d.Bytes(h)
	if err == nil && len(b) < 8+8*len(blocks)+8+len(body) {
		err = corrupt("the committed length of a block", uint64(len(b)))
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

// unspill reads the table and the body of a spilled message. Both alias the block's bytes but for
// the table.
func unspill(p []byte) (blocks []Handle, body []byte, err error) {
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
