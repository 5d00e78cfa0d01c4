package arena

import (
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/arena/layout"
)

// Note [Garbage] A faulty participant may have written anything into the control segment. So every
// count, class, offset, length and seat that is read from it must be checked against its bounds
// first. An operation that finds an invalid value fails with an ErrCorrupt that names the word. No
// process crashes or waits for ever because of it. The bytes that users keep in their blocks are
// not protected.

// reportCorruption returns an error that wraps [ErrCorrupt], for a word with the invalid value
// v. word describes the word in the error.
//
// The first time in a process it also logs the error, because the errors of a reaper, a
// finalizer or a deferred Close may go unseen. It logs in a goroutine, because this one may
// occupy a lane that the logger needs.
func reportCorruption(word string, v uint64) error {
	err := fmt.Errorf("%w: %s is %#x, which is never written: a process has overwritten the shared memory: "+
		"end all processes of this domain and restart them", ErrCorrupt, word, v)
	if !logged.Swap(true) {
		go slog.Error("shoal: " + err.Error())
	}
	return err
}

// logged is true if this process has logged that its shared memory is corrupt.
var logged atomic.Bool

// blockCount returns the end of the block indices in use, at most the number of headers with pages.
// Code that visits every block must use it. A handle received from another process is compared with
// the header's word itself, because its bits cannot name more blocks than there are headers.
func (d *Domain) blockCount() uint64 {
	if n := d.mem.Header.Blocks.Load(); n <= d.ready.Load() {
		return n
	}
	return min(d.mem.Header.Blocks.Load(), d.headersReady())
}

// headersReady returns the largest number of headers with pages that this process has seen.
func (d *Domain) headersReady() uint64 {
	for {
		seen := d.ready.Load()
		ready := min(d.mem.Header.Ready.Load(), uint64(len(d.mem.Blocks)))
		if ready <= seen || d.ready.CompareAndSwap(seen, ready) {
			return max(ready, seen)
		}
	}
}

// blockRange returns the offset, in the data segment, of the bytes of a block with extent e, and
// their maximum number. The lead of a slab covers the whole slab. It returns [ErrCorrupt] if the
// extent is invalid.
func (d *Domain) blockRange(e uint64) (off, n uint64, err error) {
	off, n, ok := d.mem.ExtentRange(e)
	if !ok {
		return 0, 0, reportCorruption("the extent of a block", e)
	}
	return off, n, nil
}

// subrange returns the offset in the data segment and the length of the part [from, to) of a
// block's bytes, as named by a lane record. It returns [ErrCorrupt] if the part is invalid.
func (d *Domain) subrange(b *layout.Block, from, to uint64) (off, n uint64, err error) {
	off, n, err = d.blockRange(b.Extent.Load())
	switch {
	case err != nil:
		return 0, 0, err
	case from > to || to > n:
		return 0, 0, reportCorruption("the committed length of a block", max(from, to))
	}
	return off + from, to - from, nil
}
