package pt

import (
	"fmt"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/tensor"
)

// StateDict returns the tensors in a loaded value. For a module, which [Load] returns as a
// *[python.Record], these are its parameters and persistent buffers, named as in its state_dict().
// A tensor in dicts, lists, tuples and other records is named by the keys, indices and attributes
// that lead to it, joined by dots. If v itself is a tensor, its name is "tensor". The tensors are
// not copied, so the caller must close them only once.
//
// rest describes the parts of v that the tensors do not contain: numbers, text and other values by
// their keys, requires_grad of parameters, non-persistent buffers, and the classes of modules and
// other objects. It omits the version numbers that PyTorch stores in a state dict (_metadata).
//
// The error wraps [ErrFormat] if two tensors would get the same name, or if v has too many nested
// values, for example because it shares its parts very often.
func StateDict(v any) (tensors map[string]*tensor.Tensor, rest []string, err error) {
	s := stateDict{tensors: map[string]*tensor.Tensor{}, inside: map[any]bool{}}
	if err := s.add("", v); err != nil {
		return nil, nil, err
	}
	return s.tensors, s.rest, nil
}

type stateDict struct {
	tensors map[string]*tensor.Tensor
	rest    []string
	modules int          // nesting depth of modules
	inside  map[any]bool // records on the current path, to stop at cycles
	visits  int
}

// maxVisits limits the number of values that are visited, because shared values are visited many
// times.
const maxVisits = 1 << 20

func (s *stateDict) add(name string, v any) error {
	if s.visits++; s.visits > maxVisits {
		return malformed("more than %d values, counting shared ones repeatedly", maxVisits)
	}
	switch v := v.(type) {
	case *tensor.Tensor:
		return s.putTensor(name, v)
	case *autograd.Param:
		if !v.Frozen && s.modules == 0 {
			s.addRest("requires_grad of", name)
		}
		return s.putTensor(name, v.T)
	case *value.Dict:
		s.addRestAttrs(name, v.Attrs)
		for key, item := range v.All() {
			if err := s.add(joinName(name, key), item); err != nil {
				return err
			}
		}
		return nil
	case []any:
		return s.addItems(name, v)
	case value.Tuple:
		return s.addItems(name, v)
	case *python.Record:
		if s.inside[v] {
			return nil
		}
		s.inside[v] = true
		defer delete(s.inside, v)
		return s.addRecord(name, v)
	}
	if v != nil || s.modules == 0 {
		s.addRest("value", name)
	}
	return nil
}

// addRest adds a part, such as "value optimizer.lr" for the kind "value" and the name
// "optimizer.lr", to the parts that [StateDict] returns as rest. The first argument is the kind.
func (s *stateDict) addRest(what, name string) {
	if name == "" {
		name = "at the top"
	}
	s.rest = append(s.rest, what+" "+name)
}

// addRestAttrs adds the attributes attrs of the dict with the given name, except for the
// versions of a state dict, to the parts that [StateDict] returns as rest.
func (s *stateDict) addRestAttrs(name string, attrs any) {
	d, _ := attrs.(*value.Dict)
	for key := range d.All() {
		if key != "_metadata" {
			s.addRest("attribute", joinName(name, key))
		}
	}
}

func (s *stateDict) addItems(name string, list []any) error {
	for i, item := range list {
		if err := s.add(joinName(name, i), item); err != nil {
			return err
		}
	}
	return nil
}

// addRecord adds the tensors of the record with the given name and, unless it is inside a
// module, its class to s.rest. For a module, it adds only the members of its state_dict, and to
// s.rest its non-persistent buffers. It returns the same errors as [StateDict].
func (s *stateDict) addRecord(name string, r *python.Record) error {
	attributes, _ := r.State.(*value.Dict)
	_, isModule := attributes.Get("_parameters")
	if s.modules == 0 {
		s.addRest("class "+r.Class.String()+" of", name)
	}
	if !isModule {
		return s.add(name, r.State)
	}
	s.modules++
	defer func() { s.modules-- }()
	passing, _ := r.Attr("_non_persistent_buffers_set")
	left, _ := passing.(*value.Set)
	for _, kind := range []string{"_parameters", "_buffers", "_modules"} {
		parts, _ := attributes.Get(kind)
		named, _ := parts.(*value.Dict)
		for key, item := range named.All() {
			if kind == "_buffers" && left != nil && left.Has(key) {
				s.addRest("buffer", joinName(name, key))
				continue
			}
			if err := s.add(joinName(name, key), item); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *stateDict) putTensor(name string, t *tensor.Tensor) error {
	if name == "" {
		name = "tensor"
	}
	if _, twice := s.tensors[name]; twice {
		return malformed("duplicate tensor name %q", name)
	}
	s.tensors[name] = t
	return nil
}

func joinName(name string, key any) string {
	if name == "" {
		return fmt.Sprint(key)
	}
	return fmt.Sprintf("%s.%v", name, key)
}
