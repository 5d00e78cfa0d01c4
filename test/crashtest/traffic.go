//go:build shoalcrash

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/shoal-mp/shoal/internal/arena"
)

// The body of a message consists of its ID, the number of its blocks, a checksum, and filler
// derived from the ID. Every block starts and ends with a word derived from the ID and the block's
// index.

const bodyHead = 24

func body(id uint64, blocks, size int) []byte {
	b := make([]byte, max(size, bodyHead))
	binary.LittleEndian.PutUint64(b, id)
	binary.LittleEndian.PutUint64(b[8:], uint64(blocks))
	for i := bodyHead; i < len(b); i++ {
		b[i] = byte(id) + byte(i)
	}
	binary.LittleEndian.PutUint64(b[16:],
		uint64(crc32.ChecksumIEEE(b[bodyHead:]))<<32|uint64(crc32.ChecksumIEEE(b[:16])))
	return b
}

// fill marks the block h as block k of message id, for [verifyMessage].
func fill(d *arena.Domain, h arena.Handle, id uint64, k int) error {
	p, err := d.Bytes(h)
	if err != nil {
		return err
	}
	if len(p) >= 16 {
		binary.LittleEndian.PutUint64(p, mark(id, k))
		binary.LittleEndian.PutUint64(p[len(p)-8:], mark(id, k))
	}
	return nil
}

func mark(id uint64, k int) uint64 { return (id + uint64(k)<<48) * 0x9e3779b97f4a7c15 }

// verifyMessage returns the ID of a received message, and an error if its body or a block is
// corrupt. It does not release the blocks.
func verifyMessage(d *arena.Domain, m *arena.Message) (uint64, error) {
	b := m.Body
	if len(b) < bodyHead {
		return 0, fmt.Errorf("corrupt message: body of %d bytes", len(b))
	}
	id := binary.LittleEndian.Uint64(b)
	sum := binary.LittleEndian.Uint64(b[16:])
	if sum != uint64(crc32.ChecksumIEEE(b[bodyHead:]))<<32|uint64(crc32.ChecksumIEEE(b[:16])) {
		return id, fmt.Errorf("corrupt message %#x: checksum", id)
	}
	if n := binary.LittleEndian.Uint64(b[8:]); n != uint64(len(m.Blocks)) {
		return id, fmt.Errorf("corrupt message %#x: %d blocks instead of %d", id, len(m.Blocks), n)
	}
	for k, h := range m.Blocks {
		p, err := d.Bytes(h)
		if err != nil {
			return id, fmt.Errorf("corrupt message %#x: block %d: %w", id, k, err)
		}
		if len(p) < 16 {
			continue
		}
		if got := binary.LittleEndian.Uint64(p); got != mark(id, k) && got != 0 {
			return id, fmt.Errorf("corrupt message %#x: block %d starts with %#x", id, k, got)
		}
		if got := binary.LittleEndian.Uint64(p[len(p)-8:]); got != mark(id, k) && got != 0 {
			return id, fmt.Errorf("corrupt message %#x: block %d ends with %#x", id, k, got)
		}
	}
	return id, nil
}

// blocks allocates n blocks of size bytes for message id. The caller must release them, also if
// there is an error.
func blocks(d *arena.Domain, id uint64, n, size int) ([]arena.Handle, error) {
	var hs []arena.Handle
	for k := range n {
		h, err := d.Alloc(size)
		if err != nil {
			return hs, err
		}
		hs = append(hs, h)
		if err := fill(d, h, id, k); err != nil {
			return hs, err
		}
	}
	return hs, nil
}

// release drops one reference to each handle. It skips handles that are 0.
func release(d *arena.Domain, hs ...arena.Handle) (err error) {
	for _, h := range hs {
		if h != 0 {
			err = errors.Join(err, d.Release(h))
		}
	}
	return err
}
