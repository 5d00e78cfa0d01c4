//go:build cgo && linux

package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
)

func FuzzDecodeToken(f *testing.F) {
	t := token{id: 7, joinAddr: "@shoal/0/1-2", address: "@shoal-1-abc"}
	b, err := t.encode(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)-1])
	f.Add([]byte(tokenMagic))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := decodeToken(b)
		if err != nil {
			if !errors.Is(err, errArgument) && !errors.Is(err, arena.ErrVersion) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		again, err := got.encode(nil)
		if err != nil || string(again) != string(b) {
			t.Fatalf("%x decodes to %+v, which is encoded as %x (%v)", b, got, again, err)
		}
	})
}

func TestToken_Encode(t *testing.T) {
	long := token{joinAddr: strings.Repeat("x", 120), address: strings.Repeat("y", 120)}
	if _, err := long.encode(nil); !errors.Is(err, errTooLarge) {
		t.Errorf("got %v, want %v", err, errTooLarge)
	}
}
