package word

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"
)

// An Of is a [Word] with values of one type, which has methods for the fields of the word. In
// crash builds, and with SHOAL_DEBUG=verify, it panics at a change that the type's table of
// transitions does not allow.
type Of[T Law[T]] struct{ Word }

// A Law defines the legal transitions of one type of word.
type Law[T any] interface {
	~uint64
	// transitionName returns the name of the transition from this word to next, or "" if it is
	// illegal.
	transitionName(next T) string
	// String formats the fields of the word.
	String() string
}

// Untyped returns the word without its type, for readers that compare values of any word.
func (w *Of[T]) Untyped() *Word { return &w.Word }

// Load returns the word's value.
func (w *Of[T]) Load() T { return T(w.Word.Load()) }

// CAS is [Word.CAS]. It calls the atomic operation itself, so that its cost stays below the
// limit of the compiler for inlining.
func (w *Of[T]) CAS(old, new T) bool {
	if verifying {
		return w.obeyCAS(old, new)
	}
	return atomic.CompareAndSwapUint64((*uint64)(unsafe.Pointer(w)), uint64(old), uint64(new))
}

// Store is [Word.Store].
func (w *Of[T]) Store(v T) {
	if verifying {
		w.obeyStore(v)
	}
	w.Word.Store(uint64(v))
}

// Set is [Word.Set].
func (w *Of[T]) Set(v T) {
	if verifying {
		w.obeyStore(v)
	}
	w.Word.Set(uint64(v))
}

// A rule is one row of a table of transitions.
type rule[T any] struct {
	name  string
	legal func(old, next T) bool
}

func ruleName[T any](rules []rule[T], old, next T) string {
	for _, r := range rules {
		if r.legal(old, next) {
			return r.name
		}
	}
	return ""
}

// verifying makes each change of a typed word be compared with its table. It must not
// change after the start of the program, because all goroutines read it.
var verifying = Crashing || slices.Contains(strings.Split(os.Getenv("SHOAL_DEBUG"), ","), "verify")

// wordNames are the words of docs/memory.md by their types.
var wordNames = map[string]string{"State": "state word of a block", "Slot": "slot word of a ring",
	"Lock": "lock word", "Participant": "participant word", "Budget": "budget word"}

// obeyCAS is CAS with a check before it.
//
//go:noinline
func (w *Of[T]) obeyCAS(old, new T) bool {
	obey(old, new)
	return w.Word.CAS(uint64(old), uint64(new))
}

// obeyStore is obey for a store of v by the word's single writer.
//
//go:noinline
func (w *Of[T]) obeyStore(v T) { obey(T(w.v.Load()), v) }

// obey panics if the change from old to next is not a legal transition of the word. It is not
// inlined, so that its callers are.
//
//go:noinline
func obey[T Law[T]](old, next T) {
	if old.transitionName(next) != "" {
		return
	}
	_, name, _ := strings.Cut(fmt.Sprintf("%T", old), ".")
	panic(fmt.Sprintf("shm: %s: the %s goes from %v to %v (%#x to %#x), which is no transition of it",
		wordCaller(), wordNames[name], old, next, uint64(old), uint64(next)))
}

// wordFiles contains the files that define the methods writing words. The operation is the caller
// outside these files.
var wordFiles = map[string]bool{"word.go": true, "typed.go": true}

// wordCaller returns the function, file and line that called the method of a word, for errors.
func wordCaller() string {
	var pcs [8]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	f, more := frames.Next()
	for more && wordFiles[filepath.Base(f.File)] {
		f, more = frames.Next()
	}
	return fmt.Sprintf("%s (%s:%d)", f.Function[strings.LastIndex(f.Function, "/")+1:], filepath.Base(f.File), f.Line)
}
