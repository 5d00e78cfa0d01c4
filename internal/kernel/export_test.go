package kernel

import (
	"fmt"
	"reflect"
	"strings"
)

// Levels are the names of the levels of this machine.
func Levels() (names []string) {
	for _, l := range levels {
		names = append(names, l.name)
	}
	return names
}

// Use makes a level the current one, until restore.
func Use(name string) (restore func()) {
	before := current
	for _, l := range levels {
		if l.name == name {
			current = l
		}
	}
	return func() { current = before }
}

// Deepest and BlockDeep are where a product is divided along the sums.
const (
	Deepest   = deepest
	BlockDeep = blockDeep
)

// CastSizes are the bytes of an element before and after each cast.
var CastSizes = castSizes

// Functions is how many there are.
const Functions Function = functions

// Stream is the part of Repeat for what is longest.
func Stream(dst, one []byte) int { return streamLines(dst, one) }

// Streamed is the length from which on Repeat calls it.
const Streamed = streamed

// AssemblyLoops returns the names of the loops of a level that are not those of the portable level.
func AssemblyLoops(name string) (names []string) {
	for _, l := range levels {
		if l.name == name {
			collectLoops(reflect.ValueOf(*l), reflect.ValueOf(portable), "", &names)
		}
	}
	return names
}

// collectLoops adds the functions and pointers in v, a struct or array, that are set and differ
// from those of plain.
func collectLoops(v, plain reflect.Value, path string, names *[]string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			collectLoops(v.Field(i), plain.Field(i), path+"."+v.Type().Field(i).Name, names)
		}
	case reflect.Array:
		for i := range v.Len() {
			collectLoops(v.Index(i), plain.Index(i), fmt.Sprintf("%s[%d]", path, i), names)
		}
	case reflect.Func, reflect.Pointer, reflect.Slice:
		if !v.IsNil() && v.Pointer() != plain.Pointer() {
			*names = append(*names, strings.TrimPrefix(path, "."))
		}
	}
}
