package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
)

// A sentinel is an error value that errors.Is finds on both sides, under its name.
type sentinel struct {
	name string
	err  error
}

// sentinels are sorted by name, so that a message lists them in one order.
var sentinels struct {
	sync.RWMutex
	list []sentinel
}

// RegisterError makes errors.Is(e, err) true for an error e that arrives from a process in which it was true. Both
// processes must register err under the same name, so call it from init. It panics if err is nil or the name is taken.
//
// Registered from the start, under their Go names, are the errors of package io, io/fs, os, context and errors that
// callers test for.
func RegisterError(name string, err error) {
	if err == nil {
		panic(fmt.Sprintf("wire: RegisterError(%q): the error is nil", name))
	}
	sentinels.Lock()
	defer sentinels.Unlock()
	i, taken := findSentinel(name)
	if taken {
		panic(fmt.Sprintf("wire: RegisterError(%q): the name is taken", name))
	}
	sentinels.list = slices.Insert(sentinels.list, i, sentinel{name, err})
}

func init() {
	RegisterError("io.EOF", io.EOF)
	RegisterError("io.ErrUnexpectedEOF", io.ErrUnexpectedEOF)
	RegisterError("io.ErrClosedPipe", io.ErrClosedPipe)
	RegisterError("io.ErrShortWrite", io.ErrShortWrite)
	RegisterError("fs.ErrInvalid", fs.ErrInvalid)
	RegisterError("fs.ErrPermission", fs.ErrPermission)
	RegisterError("fs.ErrExist", fs.ErrExist)
	RegisterError("fs.ErrNotExist", fs.ErrNotExist)
	RegisterError("fs.ErrClosed", fs.ErrClosed)
	RegisterError("os.ErrDeadlineExceeded", os.ErrDeadlineExceeded)
	RegisterError("os.ErrProcessDone", os.ErrProcessDone)
	RegisterError("context.Canceled", context.Canceled)
	RegisterError("context.DeadlineExceeded", context.DeadlineExceeded)
	RegisterError("errors.ErrUnsupported", errors.ErrUnsupported)
	RegisterError("wire.ErrType", ErrType)
	RegisterError("wire.ErrFormat", ErrFormat)
	RegisterError("wire.ErrOverflow", ErrOverflow)
	RegisterError("wire.ErrTooDeep", ErrTooDeep)
	RegisterError("wire.ErrTooLong", ErrTooLong)
	RegisterError("wire.ErrUnknownType", ErrUnknownType)
	RegisterError("wire.ErrNoBlock", ErrNoBlock)
}

// findSentinel returns where in the list name is or belongs. The caller holds the lock.
func findSentinel(name string) (i int, found bool) {
	return slices.BinarySearchFunc(sentinels.list, name, func(s sentinel, name string) int { return strings.Compare(s.name, name) })
}

// sentinelsOf returns the names of the registered sentinels that err is.
func sentinelsOf(err error) (names []string) {
	sentinels.RLock()
	list := slices.Clone(sentinels.list)
	sentinels.RUnlock()
	for _, s := range list {
		if is(err, s.err) {
			names = append(names, s.name)
		}
	}
	return names
}

func sentinelNamed(name string) error {
	sentinels.RLock()
	defer sentinels.RUnlock()
	if i, found := findSentinel(name); found {
		return sentinels.list[i].err
	}
	return nil
}
