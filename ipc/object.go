package ipc

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// An object is the state of a Mutex or another synchronization type. Its cleanup releases the block
// when the object becomes unreachable. The cleanup is not attached to the Mutex, because a Mutex
// may be copied.
type object struct {
	*hold
	sync *arena.Sync
	name string // type name; prevents receiving it as another type
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

// maxCount limits the counters that share a word of shared memory: parties, permits and outstanding
// tasks.
const maxCount = 1<<20 - 1

// checkSize returns [ErrSize] unless low <= n <= high. name is the type's name for the error.
func checkSize(name string, n, low, high int) error {
	if n < low || n > high {
		return fmt.Errorf("new %s of %d: %w: want %d to %d", name, n, ErrSize, low, high)
	}
	return nil
}

func makeObject(d *arena.Domain, name string, s *arena.Sync) *object {
	o := &object{&hold{d: d, blocks: []arena.Handle{s.Handle()}, view: s}, s, name}
	o.joinPeers()
	runtime.AddCleanup(o, func(h *hold) { h.close() }, o.hold)
	return o
}

// beginOp begins an operation. It returns [ErrClosed] if the object is closed; otherwise the
// caller must call endOp. It must be called before each use of o.sync.
func (o *object) beginOp() error {
	if o == nil { // zero Mutex
		return ErrClosed
	}
	return o.hold.beginOp()
}

func (o *object) endOp() {
	o.hold.endOp()
	runtime.KeepAlive(o)
}

// runOp runs f as an operation on o, which stays open meanwhile, and returns the translated
// error of f. It returns [ErrClosed] without calling f if o is closed. For ctx, op and state see
// [shmError].
func (o *object) runOp(ctx context.Context, op string, state error, f func() error) error {
	if err := o.beginOp(); err != nil {
		return err
	}
	defer o.endOp()
	return shmError(ctx, op, f(), state)
}

// acquireLock runs f, which acquires a lock by o.sync, and returns its translated error. If the
// lock is held afterwards, that is with a nil error or [ErrOwnerDied], the object keeps its
// references until releaseLock.
func (o *object) acquireLock(ctx context.Context, f func() error) error {
	if err := o.beginOp(); err != nil {
		return err
	}
	if err := f(); err != nil {
		return o.finishLock(ctx, err)
	}
	o.keepHeld()
	return nil
}

// finishLock completes a lock operation that returned the error err, which must not be nil, and
// returns the translated error. With [ErrOwnerDied] the lock is held, so the operation becomes a
// held lock; with other errors it ends. The caller must not call endOp.
func (o *object) finishLock(ctx context.Context, err error) error {
	state := ErrLocked
	if pid := (arena.Mutex{Sync: o.sync}).Holder(); pid != 0 {
		state = fmt.Errorf("%w by process %d", ErrLocked, pid)
	}
	if errors.Is(err, ErrOwnerDied) {
		o.keepHeld()
	} else {
		o.endOp()
	}
	return shmError(ctx, "lock", err, state)
}

// releaseLock runs f, which releases a lock by o.sync, and then drops the reference of the lock.
// It works on a closed object that still holds a lock. It returns [ErrNotOwner] if this process
// does not hold the lock.
func (o *object) releaseLock(f func() error) error {
	err := o.runLocked("unlock", f)
	if err == nil {
		o.dropLock()
	}
	return err
}

// dropLock drops the references that one held lock kept, after the lock was released or lost.
// The lock may have been acquired by another object for the same lock in this process; then that
// object's references are dropped.
func (o *object) dropLock() {
	if !o.tryDropHeld() {
		o.peers.anyHold((*hold).tryDropHeld)
	}
}

// holdsLock reports whether this process holds the lock, by this object or by another object for
// the same lock.
func (o *object) holdsLock() bool { return o.isHolding() || o.peers.anyHold((*hold).isHolding) }

// runLocked runs f as an operation that requires the lock. op names the operation for the error.
// It returns [ErrNotOwner], without calling f, if this process does not hold the lock. If the
// lock was acquired by o itself, f runs even after close.
func (o *object) runLocked(op string, f func() error) error {
	switch {
	case o == nil:
		return ErrClosed
	case !o.isHolding():
		if err := o.beginOp(); err != nil {
			return err
		}
		defer o.endOp()
		if !o.holdsLock() {
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

// clone returns a new object for the same block, with its own reference. form must be the form
// of o. The caller must close the new object.
func (o *object) clone(form arena.Form) (*object, error) {
	if err := o.beginOp(); err != nil {
		return nil, err
	}
	defer o.endOp()
	if err := o.d.Retain(o.blocks[0]); err != nil {
		return nil, err
	}
	return openObject(o.d, o.name, o.blocks[0], form)
}

// openObject returns an object that owns the caller's reference to h. On error it releases the
// reference. It returns [ErrNotObject] if the block does not contain an object of the given form.
func openObject(d *arena.Domain, name string, h arena.Handle, form arena.Form) (*object, error) {
	s, err := d.OpenSync(h, form)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s: %w", ErrNotObject, name, err), d.Release(h))
	}
	return makeObject(d, name, s), nil
}

// objectTags describes the encoding: [name, block].
var objectTags = &codec.Tags{Type: "synchronisation object", Fields: []int{2}}

// marshal encodes a reference to the object. The message becomes another owner of the block, so
// the operation that marshal begins on the object lasts until the encoder is done.
func (o *object) marshal(e *codec.Encoder) error {
	if err := o.beginOp(); err != nil {
		return fmt.Errorf("send closed object: %w", err)
	}
	e.OnDone(codec.WatcherFunc(func(bool) { o.endOp() }))
	e.Tag(objectTags, 0)
	e.String(o.name)
	e.Block(o.blocks[0])
	return nil
}

// readObject decodes an object. It returns [ErrType] if the encoded name differs from name, and
// [ErrNotObject] if the block does not contain an object of the given form.
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
		return nil, fmt.Errorf("%w: got %s, want %s", ErrType, got, name)
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
