//go:build cgo && linux

package main

import (
	"errors"
	"testing"
)

// A message must not be received if there is no handle for it.
func TestHandleTable_IsFull(t *testing.T) {
	var table handleTable
	if err := table.requireFree(); err != nil {
		t.Error(err)
	}
	table.used = handlesPerPage*mostPages - 1
	_, err := table.takeIndex()
	for _, err := range []error{err, table.requireFree()} {
		if !errors.Is(err, errTooLarge) {
			t.Errorf("got %v, want %v", err, errTooLarge)
		}
	}
	table.free = []uint32{7}
	if err := table.requireFree(); err != nil {
		t.Error(err)
	}
}

type closeCounter struct{ closed int }

func (c *closeCounter) Close() error { c.closed++; return nil }

// addObject owns the value also if C programs cannot use its type.
func TestAddObject_ClosesAnUnknownType(t *testing.T) {
	c := new(closeCounter)
	if _, err := addObject(c); !errors.Is(err, errType) || c.closed != 1 {
		t.Errorf("error %v, closed %d times, want %v and once", err, c.closed, errType)
	}
}
