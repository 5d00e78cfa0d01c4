package vision

import (
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
)

// readTargets returns the class indices after the target_transform. It evaluates the transform
// here, and not for each sample loaded, because every supported transform is a function of the
// class alone. It refuses labels that are not integers and returns nil: see [fields.refuse].
func (f *fields) readTargets(labels []any) []int64 {
	look := f.lookupFunc(f.optionalAttr("target_transform"))
	all := make([]int64, 0, len(labels))
	for i, l := range labels {
		n, ok := convertInteger(l)
		if ok && look != nil {
			n, ok = look(n)
		}
		if !ok {
			f.refuse("class of sample %d is %s, want an integer", i, showValue(l))
			return nil
		}
		all = append(all, n)
	}
	return all
}

// convertInteger converts a Python or numpy integer. ok is false for any other value.
func convertInteger(v any) (n int64, ok bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case *pickle.Scalar:
		if x, err := value.NumberOf(v); err == nil {
			n, ok = x.(int64)
		}
	}
	return n, ok
}

// lookupFunc returns the function of a target_transform, which must be int, torch.tensor, or a
// method of a list or dict that maps a class. The function returns false for a class that it
// does not map to an integer. lookupFunc returns nil if the transform changes nothing, and also
// if it refuses the transform: see [fields.refuse].
func (f *fields) lookupFunc(transform any) func(n int64) (int64, bool) {
	switch t := transform.(type) {
	case nil:
		return nil
	case value.Global:
		if t == value.Named("builtins.int") || t == value.Named("torch.tensor") || t == value.Named("torch.as_tensor") {
			return nil // the batch has integers in either case
		}
	case *value.Record:
		if found := methodFunc(t); found != nil {
			return found
		}
	}
	f.refuse("target_transform=%s, Go supports only int, torch.tensor, a list's __getitem__, and a dict's "+
		"__getitem__ and get: %s", showValue(transform), remedy)
	return nil
}

// methodFunc decodes getattr(list or dict, name) to a lookup function, which returns false for a
// class that is not mapped to an integer. methodFunc returns nil for anything else.
func methodFunc(r *value.Record) func(n int64) (int64, bool) {
	if r.Class != value.Named("builtins.getattr") || len(r.Args) != 2 {
		return nil
	}
	name := r.Args[1]
	switch of := r.Args[0].(type) {
	case *value.Dict:
		if name == "__getitem__" || name == "get" {
			return func(n int64) (int64, bool) { v, _ := of.Get(n); return convertInteger(v) }
		}
	case []any:
		if name == "__getitem__" {
			return func(n int64) (int64, bool) {
				if n < 0 {
					n += int64(len(of))
				}
				if n < 0 || n >= int64(len(of)) {
					return 0, false
				}
				return convertInteger(of[n])
			}
		}
	}
	return nil
}
