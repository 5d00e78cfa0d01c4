//go:build shoalcrash

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/internal/arena"
)

// nameScenarios returns, by name, the scenarios for the table of names.
func nameScenarios() map[string]*scenario {
	bind := func(carry, long int, names ...string) func(*victim) error {
		return func(v *victim) (err error) {
			for _, n := range names {
				err = errors.Join(err, bindName(v.d, n, carry, long))
			}
			return err
		}
	}
	bound := func(carry, long int, names ...string) func(*world) error {
		return func(w *world) (err error) {
			for _, n := range names {
				err = errors.Join(err, bindName(w.d, n, carry, long))
			}
			return err
		}
	}
	lookup := func(v *victim) error {
		for _, n := range []string{"b", "a"} {
			var m arena.Message
			if err := v.d.Lookup(n, &m); err != nil {
				return err
			}
			err := checkName(v.d, n, &m)
			m.Discard()
			if err != nil {
				return err
			}
		}
		return nil
	}
	unlink := func(v *victim) error { return errors.Join(v.d.Unlink("a"), v.d.Unlink("b")) }
	return map[string]*scenario{
		"bind a name":        {act: bind(1, 0, "a", "b"), after: (*world).names},
		"bind a name beside": {setup: bound(1, 0, "x"), act: bind(2, 0, "a"), after: (*world).names},
		"bind a long name":   {act: bind(6, 1000, "a"), after: (*world).names},
		"bind a taken name": {
			setup: bound(1, 0, "a"), after: (*world).names,
			act: func(v *victim) error {
				if err := v.d.Bind(context.Background(), "a", nil, nil); !errors.Is(err, arena.ErrExist) {
					return errors.Join(errors.New("a name was bound twice"), err)
				}
				return nil
			},
		},
		"bind past a dead claim": {
			setup: func(w *world) error {
				return errors.Join(bound(1, 0, "x")(w), w.kill("bind a name", "Ring.claimName", "CAS", "after"))
			},
			act: bind(1, 0, "a", "b"), after: (*world).names,
		},
		"board grows": {
			most: 1, after: (*world).names, act: bind(1, 0, "a", "b"),
			setup: func(w *world) (err error) {
				for i := 0; err == nil && i < 254; i++ {
					err = bindName(w.d, fmt.Sprint(i), 0, 0)
				}
				return err
			},
		},
		"look up":        {setup: bound(1, 0, "a", "b"), act: lookup, after: (*world).names},
		"look up a long": {setup: bound(6, 1000, "a", "b"), act: lookup, after: (*world).names},
		"unlink":         {drops: 1, setup: bound(1, 0, "a", "b"), act: unlink, after: (*world).names},
		"unlink a long":  {drops: 1, setup: bound(6, 1000, "a", "b"), act: unlink, after: (*world).names},
	}
}

// bindName binds name to a message with carry new blocks and a body of about long bytes, which can
// be verified by the name. The error wraps [arena.ErrExist] if the name is taken.
func bindName(d *arena.Domain, name string, carry, long int) error {
	id := uint64(len(name))<<8 + uint64(name[0])
	hs, err := blocks(d, id, carry, 5000)
	if err == nil {
		err = d.Bind(context.Background(), name, body(id, carry, long), hs)
	}
	return errors.Join(err, release(d, hs...))
}

func checkName(d *arena.Domain, name string, m *arena.Message) error {
	id, err := verifyMessage(d, m)
	if want := uint64(len(name))<<8 + uint64(name[0]); err == nil && id != want {
		err = fmt.Errorf("corrupt: name %q has message %#x", name, id)
	}
	return err
}

// names ends a scenario with names: it checks that every bound name is complete, binds a missing
// one, and unlinks all of them.
func (w *world) names() {
	if err := bindName(w.d, "a", 1, 0); err != nil && !errors.Is(err, arena.ErrExist) {
		w.addProblem("bind after a death: %v", err)
	}
	for _, n := range w.d.Names() {
		var m arena.Message
		if err := w.d.Lookup(n, &m); err != nil {
			w.addProblem("look up: %v", err)
			continue
		}
		if err := checkName(w.d, n, &m); err != nil {
			w.addProblem("%v", err)
		}
		m.Discard()
		if err := w.d.Unlink(n); err != nil {
			w.addProblem("unlink: %v", err)
		}
	}
}

// name binds, looks up or unlinks a random name. Names that are taken or missing, and a full
// domain, are no error.
func (w *worker) name() error {
	name := string(rune('a' + w.rand.IntN(4)))
	var m arena.Message
	var err error
	switch w.rand.IntN(3) {
	case 0:
		err = bindName(w.d, name, w.rand.IntN(6), w.rand.IntN(300))
	case 1:
		err = w.d.Unlink(name)
	default:
		if err = w.d.Lookup(name, &m); err == nil {
			err = checkName(w.d, name, &m)
			m.Discard()
		}
	}
	if errors.Is(err, arena.ErrExist) || errors.Is(err, arena.ErrNotExist) || errors.Is(err, arena.ErrNoSpace) {
		err = nil
	}
	return err
}
