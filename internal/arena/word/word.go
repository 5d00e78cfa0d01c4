package word

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/sys"
)

// A Word is one 64-bit word of shared memory. Every change of the domain's state must go through
// its methods, so that `make crashpoints` can kill a process before and after each change. No other
// code may write shared words.
type Word struct{ v atomic.Uint64 }

// Load returns the word's value.
func (w *Word) Load() uint64 {
	if Crashing {
		interleave(w, false)
	}
	return w.v.Load()
}

// CAS replaces old with new and reports whether the word held old.
func (w *Word) CAS(old, new uint64) bool {
	if Crashing {
		interleave(w, true)
		crashPoint("before")
	}
	ok := w.v.CompareAndSwap(old, new)
	if Crashing && ok {
		crashPoint("after")
	}
	return ok
}

// Store sets the word. Only the word's single writer may call it: the lane that owns a lane record,
// the lane named in a slot or in a stamp, or a reaper on behalf of a dead one.
func (w *Word) Store(v uint64) {
	if Crashing {
		interleave(w, true)
		crashPoint("before")
	}
	w.v.Store(v)
	if Crashing {
		crashPoint("after")
	}
}

// Set stores v with release semantics: another process that loads v also sees every earlier write
// of this goroutine. Unlike [Word.Store], it does not order v before the goroutine's later loads,
// which saves a locked instruction per message. Two Sets in a row may be merged into the later one.
// Only the word's single writer may call Set; see [ordered].
func (w *Word) Set(v uint64) {
	if Crashing {
		interleave(w, true)
		crashPoint("before")
	}
	if ordered {
		*(*uint64)(unsafe.Pointer(&w.v)) = v
	} else {
		w.v.Store(v)
	}
	if Crashing {
		crashPoint("after")
	}
}

// Set32 is [Word.Set] for a 32-bit word that is private to this process. Only one goroutine at a
// time may write it.
func Set32(w *atomic.Uint32, v uint32) {
	if ordered {
		*(*uint32)(unsafe.Pointer(w)) = v
	} else {
		w.Store(v)
	}
}

// SetLocal is [Word.Set] for a word that is private to this process. Only one goroutine at a
// time may write it.
func SetLocal(w *atomic.Uint64, v uint64) {
	if ordered {
		*(*uint64)(unsafe.Pointer(w)) = v
	} else {
		w.Store(v)
	}
}

// ordered reports whether a plain store is a release store. It is one on amd64, for three reasons.
// On other architectures, and under the race detector, which does not know them, Set and Store are
// the same.
//
//   - A store of an aligned word is not torn. The Go memory model requires a racing read of at most
//     a machine word to observe a value that was written: https://go.dev/ref/mem#restrictions. It
//     does not order the store.
//   - The compiler emits the stores of a function in program order, because each takes the memory
//     state of the one before it, and atomic operations are part of that chain:
//     https://github.com/golang/go/blob/go1.27.4/src/cmd/compile/internal/ssa/README.md. It removes
//     only a store that a later one overwrites, with no load in between:
//     https://github.com/golang/go/blob/go1.27.4/src/cmd/compile/internal/ssa/deadstore.go.
//   - The processor makes stores visible in program order, and none before an earlier load. A store
//     may become visible after a later load: Intel SDM, volume 3A, "Memory Ordering in P6 and More
//     Recent Processor Families"; AMD64 manual, volume 2, section 7.2.
const ordered = runtime.GOARCH == "amd64" && !RaceEnabled

// Add adds n and returns the new value. n may be negative in two's complement.
func (w *Word) Add(n uint64) uint64 {
	if Crashing {
		interleave(w, true)
		crashPoint("before")
	}
	v := w.v.Add(n)
	if Crashing {
		crashPoint("after")
	}
	return v
}

// Or atomically sets the bits of the word that are set in bits.
func (w *Word) Or(bits uint64) {
	if Crashing {
		interleave(w, true)
		crashPoint("before")
	}
	w.v.Or(bits)
	if Crashing {
		crashPoint("after")
	}
}

// AndNot atomically clears the bits of the word that are set in bits.
func (w *Word) AndNot(bits uint64) {
	if Crashing {
		interleave(w, true)
		crashPoint("before")
	}
	w.v.And(^bits)
	if Crashing {
		crashPoint("after")
	}
}

// Overwrite sets the word as a faulty process would: without a crash point, and without a check of
// the transition. Only tests may call it.
func (w *Word) Overwrite(v uint64) { w.v.Store(v) }

// FutexWait blocks the thread in the kernel until FutexWake, for at most d. It returns at once if
// the lower half of the word is not v, or if the system has no futex. It may also return early.
func (w *Word) FutexWait(v uint32, d time.Duration) { sys.FutexWait(&w.v, v, d) }

// FutexNap is like FutexWait, and reports whether a signal handler of this thread ended the wait.
func (w *Word) FutexNap(v uint32, d time.Duration) (interrupted bool) {
	return sys.FutexNap(&w.v, v, d)
}

// FutexWake ends one sleep of a FutexWait or FutexNap, in any process.
func (w *Word) FutexWake() { sys.FutexWake(&w.v) }

// FutexWaitUpper is FutexWait for the upper half of the word. It is ended by FutexWakeUpper, and
// not by FutexWake.
func (w *Word) FutexWaitUpper(v uint32, d time.Duration) { sys.FutexWaitUpper(&w.v, v, d) }

// FutexWakeUpper ends all sleeps on the upper half.
func (w *Word) FutexWakeUpper() { sys.FutexWakeUpper(&w.v) }
