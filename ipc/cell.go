package ipc

import (
	"github.com/shoal-mp/shoal/internal/shm"
	"github.com/shoal-mp/shoal/internal/wire"
)

// A cell is what a Mutex and its siblings have in common: one object in shared memory, which they
// close, and as which they travel. S reads the object, since a Mutex is not an Event.
type cell[S cellReader] struct{ obj *object }

// A cellReader reads the object of one type from a message. Its zero value does that.
type cellReader interface {
	read(d *wire.Decoder) (*object, error)
}

// Close gives this process's reference back, once it does not hold a lock by it any more. The
// goroutines of this process that wait for it get ErrClosed. Close is idempotent.
func (c *cell[S]) Close() error { return c.obj.close() }

// marshalWire lets the object be part of a value that is sent. Its receiver has one of its own, of
// the same memory.
func (c *cell[S]) marshalWire(e *wire.Encoder) error { return c.obj.marshal(e) }

// unmarshalWire reads what marshalWire wrote. The error is ErrType if an object of another type
// wrote it.
func (c *cell[S]) unmarshalWire(d *wire.Decoder) (err error) {
	var s S
	c.obj, err = s.read(d)
	return err
}

// The readers of the types that have no numbers.
type (
	mutexCell     struct{}
	rwMutexCell   struct{}
	recursiveCell struct{}
	semaphoreCell struct{}
	eventCell     struct{}
	barrierCell   struct{}
	onceCell      struct{}
)

func (mutexCell) read(d *wire.Decoder) (*object, error) {
	return readObject(d, mutexName, shm.FormMutex)
}

func (rwMutexCell) read(d *wire.Decoder) (*object, error) {
	return readObject(d, rwMutexName, shm.FormRWMutex)
}

func (recursiveCell) read(d *wire.Decoder) (*object, error) {
	return readObject(d, recursiveName, shm.FormMutex)
}

func (semaphoreCell) read(d *wire.Decoder) (*object, error) {
	return readObject(d, semaphoreName, shm.FormSemaphore)
}

func (eventCell) read(d *wire.Decoder) (*object, error) {
	return readObject(d, eventName, shm.FormEvent)
}

func (barrierCell) read(d *wire.Decoder) (*object, error) {
	return readObject(d, barrierName, shm.FormBarrier)
}

func (onceCell) read(d *wire.Decoder) (*object, error) {
	return readObject(d, onceName, shm.FormMutex)
}

// The cells of numbers and records have a Mutex, and their own way to travel.
type (
	elements[S cellReader] struct{ Mutex }

	valueCell[T Number] struct{}
	arrayCell[T Number] struct{}
	recordCell[T any]   struct{}
	recordsCell[T any]  struct{}
)

// A sequence is elements that have indices.
type sequence[S cellReader] struct{ elements[S] }

func sequenceOf[S cellReader](o *object) sequence[S] { return sequence[S]{elementsOf[S](o)} }

// Len returns the number of elements, 0 if they are closed.
func (s *sequence[S]) Len() int { return s.obj.count() }

// elementsOf returns the elements of an object.
func elementsOf[S cellReader](o *object) elements[S] { return elements[S]{mutexOf(o)} }

// unmarshalWire reads what marshalWire wrote. The error is ErrType if elements of another type, or
// of another layout, wrote it.
func (e *elements[S]) unmarshalWire(d *wire.Decoder) (err error) {
	var s S
	e.obj, err = s.read(d)
	return err
}

func (valueCell[T]) read(d *wire.Decoder) (*object, error) {
	return readNumbers(d, valueName[T](), shm.SizeOf[T]())
}

func (arrayCell[T]) read(d *wire.Decoder) (*object, error) {
	return readNumbers(d, arrayName[T](), shm.SizeOf[T]())
}

func (recordCell[T]) read(d *wire.Decoder) (*object, error) { return readElements[T](d, "Record") }

func (recordsCell[T]) read(d *wire.Decoder) (*object, error) { return readElements[T](d, "Records") }
