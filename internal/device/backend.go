package device

import (
	"errors"
	"sync"

	"github.com/shoal-mp/shoal/internal/codec"
)

// A Backend implements the devices of one kind. Functions that the kind does not support are
// nil. The functions must be safe for concurrent use.
type Backend struct {
	// Parse returns the device with the given name, such as cuda:1. Its part before the colon is
	// the kind.
	Parse func(name string) (Device, error)

	// Engine returns the engine of a device, or nil if the device is of another kind.
	Engine func(d Device) Engine

	// Read decodes memory that another process has marshalled.
	Read func(d *codec.Decoder) (Memory, error)

	// Lock pins pages of shared memory, so that devices can access them directly. It is called once
	// for each block, with all its bytes. unlock may be nil; otherwise it must be called before the
	// block is freed, because the pages may then be reused or released.
	Lock func(pages []byte) (unlock func() error, err error)

	// EmptyCache returns cached device memory to the devices.
	EmptyCache func() error

	// IPC shares memory of this kind with processes of other programs.
	IPC IPC
}

// backends maps a kind to its Backend.
var backends sync.Map // kind: Backend

// Register registers the backend for a kind, such as cuda. It replaces an earlier registration. It
// may be called from several goroutines.
func Register(kind string, b Backend) { backends.Store(kind, b) }

// Find returns the backend registered for a kind. ok is false if there is none.
func Find(kind string) (b Backend, ok bool) {
	found, _ := backends.Load(kind)
	b, ok = found.(Backend)
	return b, ok
}

// EngineOf returns the engine of a device, or nil if no registered backend supports the device.
func EngineOf(d Device) (e Engine) {
	backends.Range(func(_, found any) bool {
		if b := found.(Backend); b.Engine != nil {
			e = b.Engine(d)
		}
		return e == nil
	})
	return e
}

// EmptyCaches returns the cached memory of all backends to their devices. It tries all of them,
// and joins their errors.
func EmptyCaches() (err error) {
	backends.Range(func(_, found any) bool {
		if b := found.(Backend); b.EmptyCache != nil {
			err = errors.Join(err, b.EmptyCache())
		}
		return true
	})
	return err
}

// Locker returns the Lock function of a backend that has one, or nil. The function pins pages and
// returns a function that unpins them; see [Backend.Lock].
func Locker() (lock func(pages []byte) (func() error, error)) {
	backends.Range(func(_, found any) bool {
		lock = found.(Backend).Lock
		return lock == nil
	})
	return lock
}
