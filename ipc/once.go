package ipc

import (
	"context"
	"errors"

	"github.com/shoal-mp/shoal/internal/shm"
	"github.com/shoal-mp/shoal/internal/wire"
)

// A Once does something once for all processes of the domain. The zero Once is closed.
type Once struct{ mu Mutex }

const (
	onceName = "Once"
	onceDone = 1
)

// NewOnce makes a Once. The caller closes it.
func NewOnce() (*Once, error) {
	o, err := newObject(onceName, shm.SyncOptions{Form: shm.FormMutex})
	if err != nil {
		return nil, err
	}
	return &Once{Mutex{o}}, nil
}

// Do calls f unless a call by anybody has returned nil, and waits for one that is going on. If f
// returns an error or panics, or its process dies in the middle, the next Do calls its own f: f may
// find half of the work done.
func (o *Once) Do(ctx context.Context, f func() error) (err error) {
	if done, err := o.Done(); done || err != nil {
		return err
	}
	err = o.mu.Lock(ctx)
	if errors.Is(err, ErrOwnerDied) { // in the middle of f: it is to be done again
		err = o.mu.MarkConsistent()
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.mu.Unlock()) }()
	if o.mu.obj.sync.Flag() == onceDone {
		return nil
	}
	if err := f(); err != nil {
		return err
	}
	o.mu.obj.sync.SetFlag(onceDone)
	return nil
}

// Done reports whether it has been done.
func (o *Once) Done() (bool, error) {
	if err := o.mu.obj.enter(); err != nil {
		return false, err
	}
	defer o.mu.obj.leave()
	return o.mu.obj.sync.Flag() == onceDone, nil
}

// Close gives this process's reference back. Close is idempotent.
func (o *Once) Close() error { return o.mu.Close() }

// MarshalWire lets a Once be part of a value that is sent. Its receiver has one of its own.
func (o *Once) MarshalWire(e *wire.Encoder) error { return o.mu.MarshalWire(e) }

// UnmarshalWire is the counterpart of MarshalWire.
func (o *Once) UnmarshalWire(d *wire.Decoder) (err error) {
	o.mu.obj, err = readObject(d, onceName, shm.FormMutex)
	return err
}
