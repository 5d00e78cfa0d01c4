package ipc

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// An object is what a Mutex and the like hold. As with a queue's end, the Mutex itself may be
// copied, so the object is what the garbage collector is asked about.
type object struct {
	*hold
	sync *arena.Sync
	name string // of its type, so that none is received as another
}

func newObject(name string, opts arena.SyncOptions) (*object, error) {
	d, err := arena.Default()
	if err != nil {
		return nil, fmt.Errorf("new %s: %w", name, err)
	}
	s, err := d.NewSync(opts)
	if err != nil {
		return nil, fmt.Errorf("new %s: %w", name, err)
	}
	return makeObject(d, name, s), nil
}

// maxCount is of what a word of shared memory counts: parties, permits, tasks in hand.
const maxCount = 1<<20 - 1

// sized returns ErrSize unless n is within the bounds of what is to be made.
func sized(name string, n, low, high int) error {
	if n < low || n > high {
		return fmt.Errorf("new %s of %d: %w: want %d to %d", name, n, ErrSize, low, high)
	}
	return nil
}

func makeObject(d *arena.Domain, name string, s *arena.Sync) *object {
	o := &object{&hold{d: d, blocks: []arena.Handle{s.Handle()}, view: s}, s, name}
	o.join()
	runtime.AddCleanup(o, func(h *hold) { h.close() }, o.hold)
	return o
}

// enter begins an operation; each needs a leave, unless enter returns ErrClosed.
func (o *object) enter() error {
	if o == nil { // a zero Mutex
		return ErrClosed
	}
	return o.hold.enter()
}

func (o *object) leave() {
	o.hold.leave()
	runtime.KeepAlive(o)
}

// do runs an operation.
func (o *object) do(ctx context.Context, op string, state error, f func() error) error {
	if err := o.enter(); err != nil {
		return err
	}
	defer o.leave()
	return shmError(ctx, op, f(), state)
}

// lock runs an operation that takes a lock. If it does, the object stays in use until unlock.
func (o *object) lock(ctx context.Context, f func() error) error {
	if err := o.enter(); err != nil {
		return err
	}
	if err := f(); err != nil {
		return o.locked(ctx, err)
	}
	o.keep()
	return nil
}

// locked is the rest of a lock that met an obstacle, which may be a death and not keep it from
// being taken.
func (o *object) locked(ctx context.Context, err error) error {
	state := ErrLocked
	if pid := (arena.Mutex{Sync: o.sync}).Holder(); pid != 0 {
		state = fmt.Errorf("%w by process %d", ErrLocked, pid)
	}
	if errors.Is(err, ErrOwnerDied) {
		o.keep()
	} else {
		o.leave()
	}
	return shmError(ctx, "lock", err, state)
}

// unlock runs the operation that ends what lock began, also where the object was closed meanwhile.
func (o *object) unlock(f func() error) error {
	err := o.during("unlock", f)
	if err == nil {
		o.dropLock()
	}
	return err
}

// dropLock ends what lock began, by this object or by another one of the same lock.
func (o *object) dropLock() {
	if !o.tryDrop() {
		o.peers.find((*hold).tryDrop)
	}
}

// locks reports whether this process holds the lock, by this object or by another one.
func (o *object) locks() bool { return o.kept() || o.peers.find((*hold).kept) }

// during runs an operation of a process that holds a lock by this object.
func (o *object) during(op string, f func() error) error {
	switch {
	case o == nil:
		return ErrClosed
	case !o.kept():
		if err := o.enter(); err != nil {
			return err
		}
		defer o.leave()
		if !o.locks() {
			return fmt.Errorf("%s: %w", op, ErrNotOwner)
		}
	}
	err := f()
	runtime.KeepAlive(o)
	return shmError(context.Background(), op, err, nil)
}

func (o *object) close() error {
	if o == nil {
		return nil
	}
	defer runtime.KeepAlive(o)
	return o.hold.close()
}

// clone returns another object of the same block.
func (o *object) clone(form arena.Form) (*object, error) {
	if err := o.enter(); err != nil {
		return nil, err
	}
	defer o.leave()
	if err := o.d.Retain(o.blocks[0]); err != nil {
		return nil, err
	}
	return openObject(o.d, o.name, o.blocks[0], form)
}

// openObject makes an object of a reference of h, which it releases if it cannot.
func openObject(d *arena.Domain, name string, h arena.Handle, form arena.Form) (*object, error) {
	s, err := d.OpenSync(h, form)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s: %w", ErrNotObject, name, err), d.Release(h))
	}
	return makeObject(d, name, s), nil
}

// objectTags are those of [name, block].
var objectTags = &codec.Tags{Type: "synchronisation object", Fields: []int{2}}

// marshal writes the object. The message becomes another holder of it, so it must stay open until
// the message is one.
func (o *object) marshal(e *codec.Encoder) error {
	if err := o.enter(); err != nil {
		return fmt.Errorf("send what is closed: %w", err)
	}
	e.OnDone(codec.WatcherFunc(func(bool) { o.leave() }))
	e.Tag(objectTags, 0)
	e.String(o.name)
	e.Block(o.blocks[0])
	return nil
}

// readObject reads what marshal wrote.
func readObject(dec *codec.Decoder, name string, form arena.Form) (*object, error) {
	d, err := arena.Default()
	if err != nil {
		return nil, err
	}
	if err := dec.OnlyTag(objectTags); err != nil {
		return nil, err
	}
	got, err := dec.String()
	if err != nil {
		return nil, err
	}
	if got != name {
		return nil, fmt.Errorf("%w: it is a %s, not a %s", ErrType, got, name)
	}
	h, err := dec.Block()
	if err != nil {
		return nil, err
	}
	o, err := openObject(d, name, h, form)
	if err != nil {
		return nil, err
	}
	dec.OnDone(codec.WatcherFunc(func(kept bool) {
		if !kept {
			o.close()
		}
	}))
	return o, nil
}
