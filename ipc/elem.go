package ipc

import (
	"bytes"
	"reflect"

	"github.com/shoal-mp/shoal/internal/codec"
)

func elemName[T any]() string { return codec.FullName(reflect.TypeFor[T]()) }

// shortName shortens a type name for errors: it drops the directories of package paths, so
// "example.com/a/b.T" becomes "b.T".
func shortName(elem string) string {
	var short []byte
	for i := range len(elem) {
		if elem[i] == '/' {
			short = short[:bytes.LastIndexAny(short, "[]*")+1]
			continue
		}
		short = append(short, elem[i])
	}
	return string(short)
}
