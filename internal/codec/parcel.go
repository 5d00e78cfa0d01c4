package codec

import "github.com/shoal-mp/shoal/internal/arena"

// parcelTags are the tags of [body, [block …]].
var parcelTags = &Tags{"parcel", []int{2}}

// Parcel embeds the message m in this one, as one value. The caller must hold the blocks of m
// until this message is sent; then this message holds them as well.
func (e *Encoder) Parcel(m Message) error {
	e.Tag(parcelTags, 0)
	e.Bytes(m.Body)
	e.ArrayLen(len(m.Blocks))
	for _, h := range m.Blocks {
		e.Block(h)
	}
	return e.Err()
}

// Parcel reads an embedded message. It owns one reference to each of its blocks, which the
// caller must release. If [Decoder.Done] is called with false, release is called for each block
// instead.
func (d *Decoder) Parcel(release func(arena.Handle)) (m Message, err error) {
	if err := d.OnlyTag(parcelTags); err != nil {
		return m, err
	}
	if m.Body, err = d.Bytes(); err != nil {
		return m, err
	}
	n, err := d.ArrayLen()
	if err != nil || n == 0 {
		return m, err
	}
	if n > MaxBlocks {
		return m, d.formatError(d.off, "parcel has %d blocks", n)
	}
	var taken []arena.Handle
	d.OnDone(WatcherFunc(func(kept bool) {
		if kept {
			return
		}
		for _, h := range taken {
			release(h)
		}
	}))
	for range n {
		h, err := d.Block()
		if err != nil {
			return m, err
		}
		taken = append(taken, h)
	}
	m.Blocks = taken
	return m, nil
}
