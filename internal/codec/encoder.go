package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/shoal-mp/shoal/internal/arena"
)

// An Encoder appends values to the body of one message and collects its blocks. The zero Encoder is
// ready to use. [Encoder.Reset] prepares it for another message and keeps its memory. It must not
// be used by several goroutines at once.
//
// The methods that write a value return nothing. The Encoder records the first error, after which
// the message is unusable. [Encoder.Err] and [Plan.Encode] return the error.
type Encoder struct {
	Limits Limits // must be set before the first value

	// ByValue encodes a message for a domain that cannot access the blocks. The message is sent
	// with copies of the bytes it uses; see [Spans]. It must be set before the first value.
	ByValue bool

	// Moves makes the sender of the message hand over the references given to [Encoder.Give]. It
	// must be set after Reset.
	Moves bool

	buf    []byte
	blocks []arena.Handle
	given  []arena.Handle
	index  map[arena.Handle]int // the places of blocks, once they are many
	seen   map[any]int          // pointers to values that are written once
	hooks  []Watcher
	kept   []any
	depth  int
	local  bool
	err    error
}

// Reset starts a new message. Its body is written to buf, which may be nil and grows if necessary.
// To reuse the memory of a message that is done, pass its Message().Body. Reset panics if Done was
// not called for the previous message.
func (e *Encoder) Reset(buf []byte) {
	if len(e.hooks) != 0 {
		panic("wire: Encoder.Reset called before Done of the previous message")
	}
	e.buf, e.blocks, e.given = buf[:0], e.blocks[:0], e.given[:0]
	e.depth, e.local, e.err, e.Moves = 0, false, nil, false
	clearMap(e.index)
	clearMap(e.seen)
}

// clearMap clears a map that most messages do not use. To clear an empty map takes longer than to
// write a number.
func clearMap[K comparable, V any](m map[K]V) {
	if len(m) > 0 {
		clear(m)
	}
}

// Message returns the message encoded since Reset. It is valid until the next Reset, and must not
// be used after an error.
func (e *Encoder) Message() Message {
	return Message{Body: e.buf, Blocks: e.blocks, Given: e.given}
}

// StaysHere records that a written value, such as a path, is only meaningful on this machine, so
// that [Encoder.Local] returns true.
func (e *Encoder) StaysHere() { e.local = true }

// Local reports whether ByValue would change the message, because it has blocks or a value that
// stays here.
func (e *Encoder) Local() bool { return e.local || len(e.blocks) > 0 }

// Err returns the first error of a value written since Reset.
func (e *Encoder) Err() error { return e.err }

// A Watcher is notified once of the fate of a message: whether it was sent, or whether its values
// are used.
type Watcher interface{ Done(ok bool) }

// WatcherFunc is a function as a Watcher.
type WatcherFunc func(ok bool)

// Done calls f.
func (f WatcherFunc) Done(ok bool) { f(ok) }

// OnDone registers w, so that the next [Encoder.Done] calls w.Done with its argument. The
// encoder of a value should use it to keep an object alive until the message was sent, and to
// undo its steps if it was not.
func (e *Encoder) OnDone(w Watcher) { e.hooks = append(e.hooks, w) }

// Watches reports whether w, a pointer, was given to OnDone since Reset.
func (e *Encoder) Watches(w Watcher) bool { return slices.Contains(e.hooks, w) }

// Keep asks the sender to keep v reachable for the duration of the work that the message starts. v
// belongs to an object that closes itself when it is garbage collected, such as a queue with only
// one end in the message.
func (e *Encoder) Keep(v any) { e.kept = append(e.kept, v) }

// Kept returns the values given to Keep since Reset, until Done. The parent of a worker must keep
// them until the worker has ended. The sender of a message need not, because the message does not
// hold the resources that are closed then.
func (e *Encoder) Kept() []any { return e.kept }

// Done notifies the watchers given to OnDone, last one first. sent reports whether the message was
// sent. The caller must call Done exactly once for each message, even after an error of Encode.
func (e *Encoder) Done(sent bool) {
	runHooks(&e.hooks, sent)
	clearMap(e.seen)
	if e.kept != nil {
		e.kept = nil // do not reuse the memory: a caller may have the slice
	}
}

// runHooks calls Done(ok) of the hooks, last one first, and removes them. It is inlined, because
// most messages have none.
func runHooks(hooks *[]Watcher, ok bool) {
	if len(*hooks) > 0 {
		runAll(hooks, ok)
	}
}

// Watchers are watchers that are notified together, such as the result of [Decoder.Watchers].
type Watchers []Watcher

// Done calls Done(ok) of all watchers, last one first. It must be called once.
func (w Watchers) Done(ok bool) { runHooks((*[]Watcher)(&w), ok) }

func runAll(hooks *[]Watcher, ok bool) {
	list := *hooks
	for i := len(list) - 1; i >= 0; i-- {
		list[i].Done(ok)
		list[i] = nil // let the garbage collector free the value
	}
	*hooks = list[:0]
}

// Nil writes nil.
func (e *Encoder) Nil() { e.buf = append(e.buf, codeNil) }

// Bool writes a boolean.
func (e *Encoder) Bool(v bool) {
	if v {
		e.buf = append(e.buf, codeTrue)
	} else {
		e.buf = append(e.buf, codeFalse)
	}
}

// Int writes an integer in its shortest form.
func (e *Encoder) Int(v int64) {
	switch {
	case v >= 0:
		e.Uint(uint64(v))
	case v >= -32:
		e.buf = append(e.buf, byte(v))
	case v >= math.MinInt8:
		e.buf = append(e.buf, codeInt8, byte(v))
	case v >= math.MinInt16:
		e.buf = binary.BigEndian.AppendUint16(append(e.buf, codeInt8+1), uint16(v))
	case v >= math.MinInt32:
		e.buf = binary.BigEndian.AppendUint32(append(e.buf, codeInt8+2), uint32(v))
	default:
		e.buf = binary.BigEndian.AppendUint64(append(e.buf, codeInt64), uint64(v))
	}
}

// Uint writes an integer in its shortest form. Int and Uint of the same number are the same bytes.
func (e *Encoder) Uint(v uint64) {
	if v <= fixintMax {
		e.buf = append(e.buf, byte(v))
		return
	}
	if v > math.MaxUint32 {
		e.buf = binary.BigEndian.AppendUint64(append(e.buf, codeUint64), v)
		return
	}
	e.writeLength(v, codeUint8)
}

// Float writes a floating-point number of 64 bits, NaN payloads included.
func (e *Encoder) Float(v float64) {
	e.buf = binary.BigEndian.AppendUint64(append(e.buf, codeFloat64), math.Float64bits(v))
}

// Float32 writes a floating-point number of 32 bits, NaN payloads included.
func (e *Encoder) Float32(v float32) {
	e.buf = binary.BigEndian.AppendUint32(append(e.buf, codeFloat32), math.Float32bits(v))
}

// String writes s as a string if it is UTF-8, and as bytes otherwise, because MessagePack readers
// in other languages refuse a string that is not UTF-8. Decoder.String takes both.
func (e *Encoder) String(s string) {
	if !e.checkRoom(len(s)) {
		return
	}
	switch n := uint64(len(s)); {
	case !utf8.ValidString(s):
		e.writeLength(n, codeBin8)
	case n < 32:
		e.buf = append(e.buf, fixstr|byte(n))
	default:
		e.writeLength(n, codeStr8)
	}
	e.buf = append(e.buf, s...)
}

// Bytes writes b as a byte string. A nil b is written as an empty one.
func (e *Encoder) Bytes(b []byte) {
	if e.checkRoom(len(b)) {
		e.writeLength(uint64(len(b)), codeBin8)
		e.buf = append(e.buf, b...)
	}
}

// ArrayLen begins an array of n values, which the caller must write next.
func (e *Encoder) ArrayLen(n int) {
	switch {
	case !e.checkRoom(n):
	case n < 16:
		e.buf = append(e.buf, fixarray|byte(n))
	default:
		e.writeLength16(uint64(n), codeArray16)
	}
}

// MapLen begins a map of n entries. The caller must write n keys next, each followed by its
// value, in an order that depends on the keys only.
func (e *Encoder) MapLen(n int) {
	switch {
	case !e.checkRoom(2 * n):
	case n < 16:
		e.buf = append(e.buf, fixmap|byte(n))
	default:
		e.writeLength16(uint64(n), codeMap16)
	}
}

// writeLength writes n in 8, 16 or 32 bits, the fewest that suffice, preceded by code, code+1 or
// code+2. n must fit in 32 bits.
func (e *Encoder) writeLength(n uint64, code byte) {
	if n <= math.MaxUint8 {
		e.buf = append(e.buf, code, byte(n))
		return
	}
	e.writeLength16(n, code+1)
}

// writeLength16 writes n in 16 or 32 bits, the fewest that suffice, preceded by code or code+1.
// n must fit in 32 bits.
func (e *Encoder) writeLength16(n uint64, code byte) {
	if n <= math.MaxUint16 {
		e.buf = binary.BigEndian.AppendUint16(append(e.buf, code), uint16(n))
		return
	}
	e.buf = binary.BigEndian.AppendUint32(append(e.buf, code+1), uint32(n))
}

// checkRoom reports whether n more bytes stay within the limit. If they do not, it sets e.err to
// [ErrTooLong]. It also returns false after an earlier error, and panics if n is negative. Every
// write of caller-controlled size must call it first, so that encoding stops early.
func (e *Encoder) checkRoom(n int) bool {
	if n < 0 {
		panic("wire: negative length")
	}
	if limit := e.Limits.bytes(); n > limit-len(e.buf) {
		e.setError(fmt.Errorf("encode: message has %[2]d bytes, adding %[1]d exceeds %[3]d: %[4]w: put bulk data "+
			"into shared memory", n, len(e.buf), limit, ErrTooLong))
		return false
	}
	return e.err == nil
}

func (e *Encoder) setError(err error) {
	if e.err == nil {
		e.err = err
	}
}

// enterLevel increments the depth. It returns [ErrTooDeep] if the depth exceeds the limit, and
// otherwise e.err. Each successful call must be followed by leaveLevel.
func (e *Encoder) enterLevel() error {
	e.depth++
	if e.depth > e.Limits.depth() {
		return fmt.Errorf("encode level %d: %w: check for a pointer cycle, and use a slice instead of a linked list",
			e.depth, ErrTooDeep)
	}
	return e.err
}

func (e *Encoder) leaveLevel() { e.depth-- }
