package manager

import (
	"context"
)

// An Event is a flag in the server that callers can wait for.
type Event struct{ typed[Event] }

// NewEvent creates an event with a cleared flag. The caller must close it.
func NewEvent(ctx context.Context, m *Manager) (*Event, error) {
	p, err := createTyped[Event](ctx, m, eventKind)
	return &Event{p}, err
}

// Set sets the flag and wakes all waiting callers. They return even if the flag is cleared
// immediately afterwards.
func (e *Event) Set(ctx context.Context) error {
	return e.call(ctx, eventChange, encodeArg(true)).noResult()
}

// Clear clears the flag.
func (e *Event) Clear(ctx context.Context) error {
	return e.call(ctx, eventChange, encodeArg(false)).noResult()
}

// IsSet reports whether the flag is set.
func (e *Event) IsSet(ctx context.Context) (bool, error) {
	return oneResult[bool](e.call(ctx, eventIsSet))
}

// Wait blocks until the flag is set. If ctx is done first, Wait returns its error; if the flag is
// set, it returns nil even after the deadline of ctx.
func (e *Event) Wait(ctx context.Context) error { return e.call(ctx, eventWait).noResult() }

// An event is the server's state of an Event. round counts the calls of Set: callers that waited
// during a Set return even if the flag was cleared since.
type event struct {
	set   bool
	round int
}

// Methods of an Event.
var (
	eventKind = newKind("Event", func(*call) (any, error) { return new(event), nil })

	eventChange = defineMethod(eventKind, "set", (*event).setState)
	eventIsSet  = defineMethod(eventKind, "isset", (*event).isSet)
	eventWait   = defineMethod(eventKind, "wait", (*event).wait)
)

func (e *event) setState(c *call) error {
	set, err := decodeArg[bool](c, 0)
	if err == nil {
		e.set = set
		if set {
			e.round++
		}
	}
	return err
}

func (e *event) isSet(c *call) error { return addResult(c, e.set) }

func (e *event) wait(c *call) error {
	if begun, ok := c.arrived.(int); e.set || ok && begun != e.round {
		return nil
	} else if !ok {
		c.arrived = e.round
	}
	return errWait
}
