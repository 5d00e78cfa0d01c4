package ipc

import (
	"context"
	"errors"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A Once does something once for all processes of the domain. The zero Once is closed.
type Once struct{ cell }

const (
	onceName = "Once"
	onceDone = 1
)

// NewOnce makes a Once. The caller closes it.
func NewOnce() (*Once, error) {
	o, err := newObject(onceName, arena.SyncOptions{Form: arena.FormMutex})
	if err != nil {
		return nil, err
	}
	return &Once{cell{o}}, nil
}

// Do calls f unless a call by anybody has returned nil, and waits for one that is going on. If f
// returns an error or panics, or its process dies in the middle, the next Do calls its own f: f may
// find half of the work done.
func (o *Once) Do(ctx context.Context, f func() error) (err error) {
	if done, err := o.Done(); done || err != nil {
		return err
	}
	mu := mutexOf(o.obj)
	err = mu.Lock(ctx)
	if errors.Is(err, ErrOwnerDied) { // in the middle of f: it is to be done again
		err = mu.MarkConsistent()
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, mu.Unlock()) }()
	if o.obj.sync.Flag() == onceDone {
		return nil
	}
	if err := f(); err != nil {
		return err
	}
	o.obj.sync.SetFlag(onceDone)
	return nil
}

// Done reports whether it has been done.
func (o *Once) Done() (bool, error) {
	if err := o.obj.enter(); err != nil {
		return false, err
	}
	defer o.obj.leave()
	return o.obj.sync.Flag() == onceDone, nil
}

// unmarshalWire reads the object that marshalWire wrote. The error is ErrType if it is of another
// type.
func (o *Once) unmarshalWire(d *codec.Decoder) (err error) {
	o.obj, err = readObject(d, onceName, arena.FormMutex)
	return err
}
