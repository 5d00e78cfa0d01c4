package pickle

import "errors"

// appendValues appends values to the list or object on top of the stack. The error wraps
// [ErrFormat] if another value is there.
func (m *machine) appendValues(values []any) error {
	return updateTop(m, func(to any) error {
		switch to := to.(type) {
		case *List:
			to.Items = append(to.Items, values...)
		case *Object:
			to.List = append(to.List, values...)
		default:
			return malformed("cannot append to %T", to)
		}
		return nil
	})
}

// setItems sets alternating keys and values of the dict or object on top of the stack. The error
// wraps [ErrFormat] if another value is there or a key cannot be hashed.
func (m *machine) setItems(pairs []any) error {
	return updateTop(m, func(to any) error {
		d, ok := to.(*Dict)
		if o, is := to.(*Object); is {
			if len(pairs) == 0 {
				return nil
			}
			if o.Dict == nil {
				o.Dict = new(Dict)
			}
			d, ok = o.Dict, true
		}
		if !ok || len(pairs)%2 != 0 {
			return malformed("cannot set %d keys and values of %T", len(pairs), to)
		}
		for i := 0; i < len(pairs); i += 2 {
			if err := d.Set(pairs[i], pairs[i+1]); err != nil {
				return malformed("%v", err)
			}
		}
		return nil
	})
}

func (m *machine) addItems(members []any) error {
	return updateTop(m, func(to any) error {
		s, ok := to.(*Set)
		if !ok || s.Frozen {
			return malformed("cannot add members to %T", to)
		}
		for _, v := range members {
			if err := s.Add(v); err != nil {
				return malformed("%v", err)
			}
		}
		return nil
	})
}

func (m *machine) pushGlobalLines() error {
	module, err := m.src.readLine()
	if err != nil {
		return err
	}
	name, err := m.src.readLine()
	if err != nil {
		return err
	}
	return m.pushGlobal(module, name)
}

func (m *machine) pushStackGlobal(v []any) error {
	module, ok := v[0].(string)
	name, both := v[1].(string)
	if !ok || !both {
		return malformed("global is %T and %T, want two strings", v[0], v[1])
	}
	return m.pushGlobal(module, name)
}

// pushCall pushes the result of a call: the value that the constructor returns, or an inert
// [Object]. callee must be a [Global], args a [Tuple], and kwargs a *[Dict] or nil; otherwise
// the error wraps [ErrFormat]. newObj distinguishes NEWOBJ from REDUCE.
func (m *machine) pushCall(callee, args, kwargs any, newObj bool) error {
	g, ok := callee.(Global)
	list, tuple := args.(Tuple)
	if !ok || !tuple {
		return malformed("cannot call %T with %T, want a global and a tuple", callee, args)
	}
	named, ok := kwargs.(*Dict)
	if !ok && kwargs != nil {
		return malformed("keyword arguments are %T, want a dict", kwargs)
	}
	construct, _ := m.find(g)
	if construct == nil {
		return m.push(&Object{Class: g, New: newObj, Args: list, Kwargs: named})
	}
	if named.Len() > 0 {
		return malformed("%s takes no keyword arguments", g)
	}
	v, err := construct(list)
	if err != nil {
		if !errors.Is(err, ErrForm) {
			err = malformed("%s: %v", g, err)
		}
		if err := m.recordRefused(err); err != nil {
			return err
		}
		v = &Object{Class: g, New: newObj, Args: list}
	}
	return m.push(v)
}

func (m *machine) build(v []any) error {
	state := v[0]
	return updateTop(m, func(to any) error {
		switch to := to.(type) {
		case *numpyType:
			if err := to.build(state); err != nil {
				return malformed("state of %T: %v", to, err)
			}
		case *Array:
			if err := buildArray(to, state); err != nil {
				return m.recordRefused(malformed("state of %T: %v", to, err), state)
			}
		case *Object:
			to.State, to.HasState = state, true
		case *Dict:
			to.Attrs = state
		default:
			return malformed("%T takes no state", to)
		}
		return nil
	})
}

// pushPersistent pushes the value of the persistent ID v[0].
func (m *machine) pushPersistent(v []any) error {
	if m.persistent == nil {
		return m.push(&Persistent{v[0]})
	}
	value, err := m.persistent(v[0])
	if err != nil {
		return malformed("persistent id: %v", err)
	}
	return m.push(value)
}
