package ipc

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// An end is what a Sender or a Receiver holds. When the garbage collector finds that nobody has it
// any more, its port is closed: the Sender itself may be copied, so it cannot be what is watched.
type end struct {
	*port
	other *end      // of the same Queue, which is in use as long as one of its ends is; or nil
	out   *outgoing // of the operation that is alone in the end; or nil
	in    *incoming // likewise
}

func newEnd(p *port) *end {
	e := &end{port: p}
	runtime.AddCleanup(e, func(p *port) { p.close() }, p)
	return e
}

// side says which end of a queue it is.
type side bool

const (
	sending   side = true
	receiving side = false
)

// A port is one reference of the token of a queue's end, one of the ring's block, and a view of the
// ring.
type port struct {
	hold
	ring   *arena.Ring
	block  arena.Handle // of the ring
	token  arena.Handle
	elem   string // name of the type of the queue's values
	policy Policy
}

// enter begins an operation; each needs a leave, unless enter returns ErrClosed.
func (e *end) enter() error {
	_, err := e.enterAlone()
	return err
}

// enterAlone is that of the hold.
func (e *end) enterAlone() (alone bool, err error) {
	if e == nil { // a zero Sender or Receiver
		return false, ErrClosed
	}
	return e.port.enterAlone()
}

// leave ends an operation. It is the end's method because the end must not be collected before.
func (e *end) leave() {
	e.port.leave()
	runtime.KeepAlive(e)
}

func (e *end) close() error {
	if e == nil {
		return nil
	}
	defer runtime.KeepAlive(e)
	return e.port.close()
}

func (e *end) empty() bool {
	if e.enter() != nil {
		return true
	}
	defer e.leave()
	return e.ring.Empty()
}

func (e *end) len() int {
	if e.enter() != nil {
		return 0
	}
	defer e.leave()
	return e.ring.Len()
}

func (e *end) cap() int {
	if e == nil {
		return 0
	}
	return e.ring.Cap() // a matter of the view
}

// clone returns another port of the same end.
func (e *end) clone() (*end, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	if err := e.d.Retain(e.block); err != nil {
		return nil, fmt.Errorf("clone: %w", err)
	}
	if err := e.d.Retain(e.token); err != nil {
		return nil, errors.Join(fmt.Errorf("clone: %w", err), e.d.Release(e.block))
	}
	p := newPort(e.d, e.block, e.token, e.elem)
	p.policy = e.policy
	if err := p.open(); err != nil {
		return nil, fmt.Errorf("clone: %w", err)
	}
	return newEnd(p), nil
}

func newPort(d *arena.Domain, block, token arena.Handle, elem string) *port {
	return &port{hold: hold{d: d, blocks: []arena.Handle{token, block}}, block: block, token: token, elem: elem}
}

// open makes the view of the ring. If it cannot, it releases the port's references.
func (p *port) open() (err error) {
	if p.ring, err = p.d.OpenRing(p.block); err != nil {
		return errors.Join(err, p.d.Release(p.token), p.d.Release(p.block))
	}
	p.view = p.ring
	return nil
}

// endTags are those of [type of the values, policy, ring, token].
var endTags = &codec.Tags{Type: "end of a queue", Fields: []int{4}}

// marshal writes the end. The message becomes another holder of it, so it must stay open until the
// message is one.
func (e *end) marshal(enc *codec.Encoder) error {
	if err := e.enter(); err != nil {
		return fmt.Errorf("send an end of a queue: %w", err)
	}
	p := e.port
	enc.Keep(e)
	enc.OnDone(codec.WatcherFunc(func(bool) { p.leave() }))
	enc.Tag(endTags, 0)
	enc.String(p.elem)
	enc.Uint(uint64(p.policy))
	enc.Block(p.block)
	enc.Block(p.token)
	return nil
}

// unmarshal reads what marshal wrote: the end owns one reference of each of its two blocks.
func unmarshal(dec *codec.Decoder, elem string, s side) (*end, error) {
	p, err := readPort(dec, elem)
	if err != nil {
		return nil, err
	}
	if err := p.open(); err != nil {
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
		return nil, fmt.Errorf("%w: %v does not belong to the queue in %v", ErrNotEnd, p.token, p.block)
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
		return nil, fmt.Errorf("%w: it carries %s, not %s", ErrType, name, elem)
	}
	policy, err := dec.Uint()
	if err != nil || policy > uint64(DropOldest) {
		return nil, cmp.Or(err, fmt.Errorf("%w: policy %d", ErrNotEnd, policy))
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
