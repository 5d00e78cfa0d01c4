package torch

import (
	"path"
	"strings"

	"github.com/shoal-mp/shoal/encoding/python"
)

// withoutPaths returns an argument of a data set with strings in place of the pathlib paths,
// also those in lists, tuples and dicts. It does not change v.
func withoutPaths(v any) any {
	switch v := v.(type) {
	case *python.Record:
		if s, ok := pathOf(v); ok {
			return s
		}
	case []any:
		return eachWithoutPaths(v)
	case python.Tuple:
		return python.Tuple(eachWithoutPaths(v))
	case *python.Dict:
		if v == nil {
			return v
		}
		d := new(python.Dict)
		for k, item := range v.All() {
			d.Set(k, withoutPaths(item))
		}
		return d
	}
	return v
}

func eachWithoutPaths(items []any) []any {
	all := make([]any, len(items))
	for i, item := range items {
		all[i] = withoutPaths(item)
	}
	return all
}

// pathOf returns the path of a pathlib.PosixPath or PurePosixPath, and false for any other
// object. Before Python 3.13 its constructor arguments are the parts of the path, from then on
// the whole path.
func pathOf(r *python.Record) (string, bool) {
	if m := r.Class.Module; m != "pathlib" && m != "pathlib._local" || !strings.HasSuffix(r.Class.Name, "PosixPath") {
		return "", false
	}
	whole := ""
	for _, arg := range r.Args {
		part, ok := arg.(string)
		if !ok {
			return "", false
		}
		if strings.HasPrefix(part, "/") {
			whole = part
		} else {
			whole = path.Join(whole, part)
		}
	}
	return path.Join(".", whole), true
}
