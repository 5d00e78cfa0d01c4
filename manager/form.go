package manager

import (
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A form is the encoding of a proxy: the address of the server, the object's id, and the blocks
// that keep both alive while a process or a message has a reference to them.
//
//	0  [server, pid, object, life]
//	1  [server, pid, object, life, accept, alive]
//	2  [server, pid, object, life, accept, alive, data]
//
// data is present if clients read the object without a call. A proxy of a server on another
// machine has only the block life, which is virtual: see Note [Far blocks].
type form struct {
	address
	id         uint64
	life, data arena.Handle
}

// Tags of a form.
const (
	farForm = iota
	nearForm
	dataForm
)

const formHead = 3 // number of fields before the blocks

var formTags = &codec.Tags{Type: "proxy's form",
	Fields: []int{farForm: formHead + 1, nearForm: formHead + 3, dataForm: formHead + 4}}

func (f form) tag() int {
	switch {
	case f.accept == 0:
		return farForm
	case f.data == 0:
		return nearForm
	}
	return dataForm
}

func (f form) encodeForm(e *codec.Encoder) error {
	tag := f.tag()
	e.Tag(formTags, tag)
	e.Bytes(f.server[:])
	e.Int(int64(f.pid))
	e.Uint(f.id)
	blocks := [...]arena.Handle{f.life, f.accept, f.alive, f.data}
	for _, h := range blocks[:formTags.Fields[tag]-formHead] {
		e.Block(h)
	}
	return e.Err()
}

// readForm decodes a form and returns it with the client for its server. The caller owns the
// references to the blocks life and data, and a use of the client, which it must drop. It
// returns [ErrForeign] if this process has no connection to the server and the form contains
// none.
func readForm(d *codec.Decoder) (f form, c *client, err error) {
	tag, err := d.Tag(formTags)
	if err != nil {
		return f, nil, err
	}
	server, err := d.Bytes()
	if err != nil {
		return f, nil, err
	}
	if len(server) != len(f.server) {
		return f, nil, fmt.Errorf("%w: server id has %d bytes, want 16", codec.ErrFormat, len(server))
	}
	copy(f.server[:], server)
	pid, err := d.Int()
	if err != nil {
		return f, nil, err
	}
	f.pid = int(pid)
	if f.id, err = d.Uint(); err != nil {
		return f, nil, err
	}
	var blocks [4]arena.Handle
	for i := range formTags.Fields[tag] - formHead {
		if blocks[i], err = d.Block(); err != nil {
			return f, nil, errors.Join(err, releaseBlocks(blocks))
		}
	}
	if isFar(blocks[0]) {
		r := farOf(blocks[0]) // the other blocks are zero; see importBlocks
		if r == nil {
			return f, nil, ErrForeign
		}
		f.life = blocks[0]
		if r.server != f.server {
			return f, nil, errors.Join(ErrForeign, r.Release(f.life))
		}
		r.addUse()
		return f, r, nil
	}
	f.life, f.accept, f.alive, f.data = blocks[0], blocks[1], blocks[2], blocks[3]
	if c, err = acquireClient(f.address); err != nil {
		k := defaultKeeper()
		err = errors.Join(err, k.Release(f.life))
		if f.data != 0 {
			err = errors.Join(err, k.Release(f.data))
		}
	}
	return f, c, err
}

func releaseBlocks(blocks [4]arena.Handle) error {
	for _, h := range blocks {
		switch r := farOf(h); {
		case r != nil:
			r.Release(h)
		case h != 0 && !isFar(h):
			defaultKeeper().Release(h)
		}
	}
	return nil
}
