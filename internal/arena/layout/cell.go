package layout

import (
	"structs"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena/word"
)

// A Cell is the head of a block of kind [ObjectSync]. Its words hold the state of a mutex, a
// read-write mutex, a semaphore, a condition variable, an event or a barrier; one layout serves all
// forms. The cell of a form that needs no per-participant words ends before Shares, and the user's
// data begins there.
type Cell struct {
	_ structs.HostLayout

	Lock  word.Of[word.Lock] // holder of the lock: identity 44 | seat 8 | 0 10 | state 2
	State word.Word          // depends on the form: permits, a turn, a flag
	Limit word.Word          // constant: initial permits of a semaphore, or parties of a barrier
	Form  word.Word          // constant: the Form, and FormBounded
	// Dead is the participant that died with the lock, a permit or a membership. Its layout is that
	// of Lock, with the bit [word.Unborn].
	Dead  word.Word
	Owner word.Word // recursive mutex: the owner within the holding process
	Depth word.Word // recursive mutex: the number of Locks without an Unlock
	_     [8]byte

	Waiting  Bitmap // bitmap of participants that compete for the resource: one is woken
	Watching Bitmap // bitmap of participants that wait for a broadcast: all are woken

	Shares [word.MaxParticipants]word.Word // per seat: identity 44 | count 20
	// Tickets has a word per seat. Cond: arrived 32 | served 32. Barrier: identity 44 | count 20.
	Tickets [word.MaxParticipants]word.Word
}

// A Form is the type of the synchronization object in a [Cell].
type Form uint8

// The forms. An object that needs a lock, a flag word and data should use FormMutex too.
const (
	FormMutex Form = iota + 1
	FormRWMutex
	FormSemaphore
	FormCond
	FormEvent
	FormBarrier
)

// FormBounded is a bit of the word Form: the semaphore is bounded.
const FormBounded = 1 << 8

// CellHeadSize is the size of the smallest cell, and the offset of the user's data in a block of
// FormMutex.
const CellHeadSize = unsafe.Offsetof(Cell{}.Shares)

// Size returns the number of bytes that a cell of this form takes.
func (f Form) Size() uint64 {
	switch f {
	case FormRWMutex, FormSemaphore:
		return uint64(unsafe.Offsetof(Cell{}.Tickets))
	case FormCond, FormBarrier:
		return uint64(unsafe.Sizeof(Cell{}))
	}
	return uint64(CellHeadSize)
}

// FormNames has the names of the forms, as users see them.
var FormNames = map[Form]string{FormMutex: "mutex", FormRWMutex: "rwmutex", FormSemaphore: "semaphore",
	FormCond: "cond", FormEvent: "event", FormBarrier: "barrier"}
