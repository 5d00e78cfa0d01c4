package pickle

import (
	"errors"
	"fmt"
	"slices"
)

// machine executes one pickle. [Decoder.Decode] makes it. One goroutine may use it.
type machine struct {
	src        *source
	globals    Globals
	persistent func(id any) (any, error)
	limits     Limits
	stack      []any
	marks      []int // stack heights
	memo       memo
	room       int   // remaining number of values
	refused    error // first refused name or unrepresentable value
	aside      []any // parts of refused values
	done       bool
}

// stackRoom is the initial stack capacity, sufficient for a message with a tensor.
const stackRoom = 16

func (m *machine) run() (v any, op byte, err error) {
	for !m.done {
		if op, err = m.src.readByte(); err != nil {
			return nil, op, err
		}
		do := ops[op]
		if do == nil {
			return nil, op, malformed("opcode is not in the allowed dialect")
		}
		if err := do(m); err != nil {
			return nil, op, err
		}
	}
	if len(m.stack) != 1 || len(m.marks) != 0 {
		return nil, op, malformed("got %d values and %d marks at the end, want one value", len(m.stack), len(m.marks))
	}
	return m.stack[0], op, nil
}

func (m *machine) push(v any) error {
	if m.room--; m.room < 0 {
		return fmt.Errorf("more than %d values: %w", m.limits.Items, ErrLimit)
	}
	m.stack = append(m.stack, v)
	return nil
}

// countAboveMark returns the number of values above the last mark, or of all values if there is
// no mark. An opcode must not pop values below the mark.
func (m *machine) countAboveMark() int {
	if len(m.marks) == 0 {
		return len(m.stack)
	}
	return len(m.stack) - m.marks[len(m.marks)-1]
}

// pop removes the top n values and returns them in push order. The slice is valid until the next
// push. The error wraps [ErrFormat] if there are fewer values above the last mark.
func (m *machine) pop(n int) ([]any, error) {
	if m.countAboveMark() < n {
		return nil, malformed("stack has too few values")
	}
	at := len(m.stack) - n
	values := m.stack[at:]
	m.stack = m.stack[:at]
	return values, nil
}

func (m *machine) topValue() (any, error) {
	if m.countAboveMark() < 1 {
		return nil, malformed("stack has too few values")
	}
	return m.stack[len(m.stack)-1], nil
}

func (m *machine) pushMark() error {
	if m.room--; m.room < 0 {
		return fmt.Errorf("more than %d values: %w", m.limits.Items, ErrLimit)
	}
	m.marks = append(m.marks, len(m.stack))
	return nil
}

// popMark removes the last mark and all values above it, and returns the values in push order.
// The slice is valid until the next push. The error wraps [ErrFormat] if there is no mark.
func (m *machine) popMark() ([]any, error) {
	if len(m.marks) == 0 {
		return nil, malformed("stack has no mark")
	}
	values, err := m.pop(m.countAboveMark())
	m.marks = m.marks[:len(m.marks)-1]
	return values, err
}

// replaceByTuple replaces the top n values by a tuple. The error wraps [ErrFormat] if there are
// fewer.
func (m *machine) replaceByTuple(n int) error {
	values, err := m.pop(n)
	if err != nil {
		return err
	}
	return m.push(Tuple(slices.Clone(values)))
}

func (m *machine) putMemo(at uint64) error {
	v, err := m.topValue()
	if err != nil {
		return err
	}
	if m.room--; m.room < 0 {
		return fmt.Errorf("more than %d values: %w", m.limits.Items, ErrLimit)
	}
	m.memo.set(at, v)
	return nil
}

func (m *machine) getMemo(at uint64) error {
	v, ok := m.memo.get(at)
	if !ok {
		return malformed("memo has no entry %d", at)
	}
	return m.push(v)
}

// pushGlobal pushes a name as a [Global]. If the name is not allowed, decoding continues, and
// the error is recorded in m.refused.
func (m *machine) pushGlobal(module, name string) error {
	g := Global{Module: canonicalModule(module), Name: name}
	if _, ok := m.find(g); !ok && m.refused == nil {
		m.refused = &GlobalError{g}
	}
	return m.push(g)
}

// recordRefused records an unrepresentable value, so that decoding can continue, and keeps its
// parts for the caller of [Decoder.Decode]. It returns err if err does not wrap [ErrForm] and
// nothing was refused before.
func (m *machine) recordRefused(err error, parts ...any) error {
	if m.refused == nil {
		if !errors.Is(err, ErrForm) {
			return err
		}
		m.refused = err
	}
	m.aside = append(m.aside, parts...)
	return nil
}

func (m *machine) find(g Global) (Constructor, bool) {
	if c, ok := standard[g]; ok {
		return c, true
	}
	if m.globals == nil {
		return nil, false
	}
	return m.globals(g)
}
