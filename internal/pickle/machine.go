package pickle

import (
	"errors"
	"fmt"
	"slices"
)

// A machine runs one pickle.
type machine struct {
	src        *source
	globals    Globals
	persistent func(id any) (any, error)
	limits     Limits
	stack      []any
	marks      []int // heights of the stack
	memo       memo
	room       int   // for so many more values
	refused    error // the first name that is not allowed, or value that has no form
	aside      []any // what the refused has no place for
	done       bool
}

// stackRoom is for what the message of a tensor has.
const stackRoom = 16

func (m *machine) run() (v any, op byte, err error) {
	for !m.done {
		if op, err = m.src.byte(); err != nil {
			return nil, op, err
		}
		do := ops[op]
		if do == nil {
			return nil, op, malformed("the opcode is not of the dialect")
		}
		if err := do(m); err != nil {
			return nil, op, err
		}
	}
	if len(m.stack) != 1 || len(m.marks) != 0 {
		return nil, op, malformed("%d values and %d marks are left instead of one value", len(m.stack), len(m.marks))
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

// above is how many values there are above the last mark, none of which an opcode may take from
// below it.
func (m *machine) above() int {
	if len(m.marks) == 0 {
		return len(m.stack)
	}
	return len(m.stack) - m.marks[len(m.marks)-1]
}

// pop takes the upper n values, in the order in which they were pushed. The slice is valid until
// the next push.
func (m *machine) pop(n int) ([]any, error) {
	if m.above() < n {
		return nil, malformed("the stack is short of values")
	}
	at := len(m.stack) - n
	values := m.stack[at:]
	m.stack = m.stack[:at]
	return values, nil
}

func (m *machine) top() (any, error) {
	if m.above() < 1 {
		return nil, malformed("the stack is short of values")
	}
	return m.stack[len(m.stack)-1], nil
}

func (m *machine) mark() error {
	if m.room--; m.room < 0 {
		return fmt.Errorf("more than %d values: %w", m.limits.Items, ErrLimit)
	}
	m.marks = append(m.marks, len(m.stack))
	return nil
}

// popMark takes all values above the last mark, and the mark.
func (m *machine) popMark() ([]any, error) {
	if len(m.marks) == 0 {
		return nil, malformed("there is no mark")
	}
	values, err := m.pop(m.above())
	m.marks = m.marks[:len(m.marks)-1]
	return values, err
}

// tuple makes a tuple of the upper n values.
func (m *machine) tuple(n int) error {
	values, err := m.pop(n)
	if err != nil {
		return err
	}
	return m.push(Tuple(slices.Clone(values)))
}

func (m *machine) put(at uint64) error {
	v, err := m.top()
	if err != nil {
		return err
	}
	if m.room--; m.room < 0 {
		return fmt.Errorf("more than %d values: %w", m.limits.Items, ErrLimit)
	}
	m.memo.set(at, v)
	return nil
}

func (m *machine) get(at uint64) error {
	v, ok := m.memo.get(at)
	if !ok {
		return malformed("nothing is remembered under %d", at)
	}
	return m.push(v)
}

// global pushes a name, known or not.
func (m *machine) global(module, name string) error {
	g := Global{Module: canonicalModule(module), Name: name}
	if _, ok := m.find(g); !ok && m.refused == nil {
		m.refused = &GlobalError{g}
	}
	return m.push(g)
}

// refuse goes on without what has no form, and keeps its parts. It returns err if err is another
// error, in a pickle that had nothing of this kind before.
func (m *machine) refuse(err error, parts ...any) error {
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
