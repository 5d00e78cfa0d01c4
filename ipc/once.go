package ipc

import (
	"context"
	"errors"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A Once performs an action once for all processes of the domain. The zero Once is closed.
type Once struct{ cell }

const (
	onceName = "Once"
	onceDone = 1
)

// NewOnce returns a new Once. The caller must close it.
func NewOnce() (*Once, error) {
	o, err := newObject(onceName, arena.SyncOptions{Form: arena.FormMutex})
	if err != nil {
		return nil, err
	}
	return &Once{cell{o}}, nil
}

// Do calls f unless a call in any process has already succeeded, and waits for a call in
// progress. A call succeeds if it returns nil. Do returns nil if the action has been performed,
// and otherwise the error of f, [ErrClosed], or an error that wraps the error of ctx if ctx is
// done while another call is in progress. f must not call Do of the same Once, which would block
// until its ctx is done. If f returns an error or panics, or its process dies, the next Do calls
// its own f, which must therefore tolerate partially completed work.
func (o *Once) Do(ctx context.Context, f func() error) (err error) {
	if done, err := o.Done(); done || err != nil {
		return err
	}
	mu := mutexOf(o.obj)
	err = mu.Lock(ctx)
	if errors.Is(err, ErrOwnerDied) { // its process died in f: call f again
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

// Done reports whether a call of [Once.Do] has succeeded in any process. It returns [ErrClosed]
// if o is closed.
func (o *Once) Done() (bool, error) {
	if err := o.obj.beginOp(); err != nil {
		return false, err
	}
	defer o.obj.endOp()
	return o.obj.sync.Flag() == onceDone, nil
}

// unmarshalWire decodes a Once. It returns [ErrType] if the value is of another type.
func (o *Once) unmarshalWire(d *codec.Decoder) (err error) {
	o.obj, err = readObject(d, onceName, arena.FormMutex)
	return err
}
