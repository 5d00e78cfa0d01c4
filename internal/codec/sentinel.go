package codec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// A sentinel is an error value that was given to [RegisterError]. It is sent by its name, so
// that [errors.Is] recognizes it in both processes.
type sentinel struct {
	name string
	err  error
}

// sentinels are the registered sentinels.
var sentinels = book[sentinel]{enter: enterSentinel}

// sentinelList is sorted by name, so that a message lists them in one order. sentinels guards it.
var sentinelList []sentinel

// RegisterError preserves errors.Is(e, err) for an error e that is sent between processes. Both
// processes must register err under the same name, so it should be called in init. It panics if err
// is nil or the name is taken.
//
// Common errors of the packages io, io/fs, os, context and errors are registered under their Go
// names.
func RegisterError(name string, err error) {
	if err == nil {
		panic(fmt.Sprintf("wire: RegisterError(%q): error is nil", name))
	}
	sentinels.addEntries(sentinel{name, err})
}

func enterSentinel(s sentinel) {
	i, taken := findSentinel(s.name)
	if taken {
		panic(fmt.Sprintf("wire: RegisterError(%q): name is already taken", s.name))
	}
	sentinelList = slices.Insert(sentinelList, i, s)
}

func init() {
	sentinels.addEntries(
		sentinel{"io.EOF", io.EOF},
		sentinel{"io.ErrUnexpectedEOF", io.ErrUnexpectedEOF},
		sentinel{"io.ErrClosedPipe", io.ErrClosedPipe},
		sentinel{"io.ErrShortWrite", io.ErrShortWrite},
		sentinel{"fs.ErrInvalid", fs.ErrInvalid},
		sentinel{"fs.ErrPermission", fs.ErrPermission},
		sentinel{"fs.ErrExist", fs.ErrExist},
		sentinel{"fs.ErrNotExist", fs.ErrNotExist},
		sentinel{"fs.ErrClosed", fs.ErrClosed},
		sentinel{"os.ErrDeadlineExceeded", os.ErrDeadlineExceeded},
		sentinel{"os.ErrProcessDone", os.ErrProcessDone},
		sentinel{"context.Canceled", context.Canceled},
		sentinel{"context.DeadlineExceeded", context.DeadlineExceeded},
		sentinel{"errors.ErrUnsupported", errors.ErrUnsupported},
		sentinel{"wire.ErrType", ErrType},
		sentinel{"wire.ErrFormat", ErrFormat},
		sentinel{"wire.ErrTag", ErrTag},
		sentinel{"wire.ErrOverflow", ErrOverflow},
		sentinel{"wire.ErrTooDeep", ErrTooDeep},
		sentinel{"wire.ErrTooLong", ErrTooLong},
		sentinel{"wire.ErrUnknownType", ErrUnknownType},
		sentinel{"wire.ErrNoBlock", ErrNoBlock},
	)
}

// findSentinel returns the index of name in sentinelList and true, or the index at which it
// belongs and false. The caller must hold the lock of sentinels.
func findSentinel(name string) (i int, found bool) {
	return slices.BinarySearchFunc(sentinelList, name,
		func(s sentinel, name string) int { return strings.Compare(s.name, name) })
}

// sentinelsOf returns the names of the registered sentinels that err matches by [errors.Is], in
// ascending order.
func sentinelsOf(err error) (names []string) {
	sentinels.openForRead()
	list := slices.Clone(sentinelList)
	sentinels.RUnlock()
	for _, s := range list {
		if isError(err, s.err) {
			names = append(names, s.name)
		}
	}
	return names
}

func sentinelNamed(name string) error {
	sentinels.openForRead()
	defer sentinels.RUnlock()
	if i, found := findSentinel(name); found {
		return sentinelList[i].err
	}
	return nil
}
