package ipc

import (
	"fmt"
	"hash/fnv"
	"io"
	"reflect"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/sentinel"
)

// recordName returns the wire name of a Record or of Records of T. kind is the name of the
// generic type, "Record" or "Records". The name contains a checksum of the memory layout,
// because another program may declare a different type with the same name. It returns [ErrType]
// if T has no fixed layout.
func recordName[T any](kind string) (string, error) {
	t := reflect.TypeFor[T]()
	sum := fnv.New64a()
	if path, reason := writeLayout(sum, t, codec.FullName(t)); reason != "" {
		return "", sentinel.New(fmt.Sprintf("ipc: no record of %s: %s %s", t, path, reason), ErrType)
	}
	return fmt.Sprintf("%s[%s %x]", kind, codec.FullName(t), sum.Sum(nil)), nil
}

// writeLayout writes a description of t's memory layout to w. reason is "" if t has a fixed
// layout. Otherwise it says why not, at is the path of the offending part, and the description
// is incomplete. path is the path of t itself. Other processes read the same bytes, so the type
// must contain neither pointers nor padding.
func writeLayout(w io.Writer, t reflect.Type, path string) (at, reason string) {
	fmt.Fprintf(w, "%d %d,", t.Kind(), t.Size())
	switch k := t.Kind(); {
	case t.PkgPath() == "sync" || t.PkgPath() == "sync/atomic":
		return path, fmt.Sprintf("is a %s, which works within one process only: use the Mutex of the record", t)
	case t.Size() == 0:
		return path, "has size 0, want a type with at least 1 byte"
	case k == reflect.Uintptr:
		return path, "is an address, which is invalid in other processes: use uint64 for a number"
	case k >= reflect.Bool && k <= reflect.Complex128:
		return "", ""
	case k == reflect.Array:
		return writeLayout(w, t.Elem(), path+"[]")
	case k == reflect.Struct:
		return writeStructLayout(w, t, path)
	case k == reflect.String || k == reflect.Slice:
		return path,
			fmt.Sprintf("is a %s, which points to memory outside the record: use an array, such as [32]byte", t)
	}
	return path, fmt.Sprintf("is a %s, which points into the memory of one process", t)
}

// writeStructLayout is [writeLayout] for the struct type t, with the same results. The fields
// must be contiguous, without padding.
func writeStructLayout(w io.Writer, t reflect.Type, path string) (at, reason string) {
	end := uintptr(0)
	for i := range t.NumField() {
		f := t.Field(i)
		name := path + "." + f.Name
		if f.Offset > end {
			return name, paddingReason(f.Offset-end, "before it")
		}
		if at, reason := writeLayout(w, f.Type, name); reason != "" {
			return at, reason
		}
		end = f.Offset + f.Type.Size()
	}
	if end < t.Size() {
		return path, paddingReason(t.Size()-end, "at its end")
	}
	return "", ""
}

func paddingReason(n uintptr, where string) string {
	return fmt.Sprintf("has %d bytes of padding %s, which depends on the compiler: put large fields first, or add "+
		"a field `_ [%d]byte` there",
		n, where, n)
}
