package ipc

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// An end is the state of a [Sender] or a [Receiver]. A cleanup closes its port when the end becomes
// unreachable. The cleanup is attached to the end and not to the Sender, because a Sender may be
// copied.
type end struct {
	*port
	other *end      // other end of the same Queue, kept reachable; or nil
	out   *outgoing // reused by an operation that is alone on the end; or nil
	in    *incoming // likewise
}

func newEnd(p *port) *end {
	e := &end{port: p}
	runtime.AddCleanup(e, func(p *port) { p.close() }, p)
	return e
}

// A side distinguishes the two ends of a queue.
type side bool

const (
	sending   side = true
	receiving side = false
)

// A port is a view of a ring together with two references: one to the ring's block and one to the
// token that counts the open ends of one side.
type port struct {
	hold
	ring   *arena.Ring
	block  arena.Handle // block of the ring
	token  arena.Handle
	elem   string // name of the element type
	policy Policy
}

// beginOp begins an operation. It returns [ErrClosed] if the end is closed; otherwise the caller
// must call endOp.
func (e *end) beginOp() error {
	_, err := e.beginOpAlone()
	return err
}

// beginOpAlone is like beginOp, and also reports whether this is the only operation in progress.
// If alone is true, the caller may use e.out and e.in until endOp; see [hold.beginOpAlone].
func (e *end) beginOpAlone() (alone bool, err error) {
	if e == nil { // zero Sender or Receiver
		return false, ErrClosed
	}
	return e.port.beginOpAlone()
}

// endOp ends an operation that was begun by beginOp or beginOpAlone. It is a method of the end,
// not of the port, because it must keep the end reachable until the operation is over.
func (e *end) endOp() {
	e.port.endOp()
	runtime.KeepAlive(e)
}

func (e *end) close() error {
	if e == nil {
		return nil
	}
	defer runtime.KeepAlive(e)
	return e.port.close()
}

func (e *end) isEmpty() bool {
	if e.beginOp() != nil {
		return true
	}
	defer e.endOp()
	return e.ring.Empty()
}

func (e *end) len() int {
	if e.beginOp() != nil {
		return 0
	}
	defer e.endOp()
	return e.ring.Len()
}

func (e *end) cap() int {
	if e == nil {
		return 0
	}
	return e.ring.Cap() // does not need the block: Cap is cached in the view
}

// clone returns a new end for the same side of the same queue, with its own references. The
// caller must close it.
func (e *end) clone() (*end, error) {
	if err := e.beginOp(); err != nil {
		return nil, err
	}
	defer e.endOp()
	if err := e.d.Retain(e.block); err != nil {
		return nil, fmt.Errorf("clone: %w", err)
	}
	if err := e.d.Retain(e.token); err != nil {
		return nil, errors.Join(fmt.Errorf("clone: %w", err), e.d.Release(e.block))
	}
	p := newPort(e.d, e.block, e.token, e.elem)
	p.policy = e.policy
	if err := p.openRing(); err != nil {
		return nil, fmt.Errorf("clone: %w", err)
	}
	return newEnd(p), nil
}

func newPort(d *arena.Domain, block, token arena.Handle, elem string) *port {
	return &port{hold: hold{d: d, blocks: []arena.Handle{token, block}}, block: block, token: token, elem: elem}
}

// openRing opens p's view of the ring, p.ring. It must be called before p is used. On error it
// releases both references of p.
func (p *port) openRing() (err error) {
	if p.ring, err = p.d.OpenRing(p.block); err != nil {
		return errors.Join(err, p.d.Release(p.token), p.d.Release(p.block))
	}
	p.view = p.ring
	return nil
}

// endTags describes the encoding: [element type, policy, ring, token].
var endTags = &codec.Tags{Type: "end of a queue", Fields: []int{4}}

// marshal encodes references to the end's blocks. The message becomes another owner of the end,
// so the operation that marshal begins on the end lasts until the encoder is done.
func (e *end) marshal(enc *codec.Encoder) error {
	if err := e.beginOp(); err != nil {
		return fmt.Errorf("send queue end: %w", err)
	}
	p := e.port
	enc.Keep(e)
	enc.OnDone(codec.WatcherFunc(func(bool) { p.endOp() }))
	enc.Tag(endTags, 0)
	enc.String(p.elem)
	enc.Uint(uint64(p.policy))
	enc.Block(p.block)
	enc.Block(p.token)
	return nil
}

// unmarshalEnd decodes an end. The end owns one reference to each of its two blocks. It returns
// [ErrType] if the name of the element type differs from elem, and [ErrNotEnd] if the blocks are
// not a ring with its token for side s.
func unmarshalEnd(dec *codec.Decoder, elem string, s side) (*end, error) {
	p, err := readPort(dec, elem)
	if err != nil {
		return nil, err
	}
	if err := p.openRing(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotEnd, err)
	}
	unused := codec.WatcherFunc(func(kept bool) {
		if !kept {
			p.close()
		}
	})
	dec.OnDone(unused)
	dec.OnEnd(unused)
	want := p.ring.Receivers()
	if s == sending {
		want = p.ring.Senders()
	}
	if p.token != want {
		return nil, fmt.Errorf("%w: token %v does not match the queue in block %v", ErrNotEnd, p.token, p.block)
	}
	return newEnd(p), nil
}

func readPort(dec *codec.Decoder, elem string) (p *port, err error) {
	d, err := arena.Default()
	if err != nil {
		return nil, err
	}
	if err := dec.OnlyTag(endTags); err != nil {
		return nil, err
	}
	name, err := dec.String()
	if err != nil {
		return nil, err
	}
	if name != elem {
		return nil, fmt.Errorf("%w: queue of %s, want %s", ErrType, name, elem)
	}
	policy, err := dec.Uint()
	if err != nil || policy > uint64(DropOldest) {
		return nil, cmp.Or(err, fmt.Errorf("%w: unknown policy %d", ErrNotEnd, policy))
	}
	block, err := dec.Block()
	if err != nil {
		return nil, err
	}
	token, err := dec.Block()
	if err != nil {
		return nil, errors.Join(err, d.Release(block))
	}
	p = newPort(d, block, token, elem)
	p.policy = Policy(policy)
	return p, nil
}
