package arena

import (
	"fmt"
	"log/slog"
	"sync/atomic"
)

// Note [Garbage] A faulty participant may have written anything into the control segment. So every
// count, class, offset, length and seat that is read there is compared with its bounds first. An
// operation that meets garbage fails with an ErrCorrupt that names the word. No process crashes by
// it or waits for ever. The bytes that users keep in their blocks are not protected.

// corrupt returns the error for a word that holds what no participant writes.
//
// The first time it also logs the error: nobody sees those of a reaper, of a finalizer, and of a
// Close that is deferred. A goroutine logs, since this one may have a lane that the logger needs.
func corrupt(word string, v uint64) error {
	err := fmt.Errorf("%w: %s is %#x, which nobody writes: something else wrote to the shared memory; "+
		"end all processes of this domain and start them again", ErrCorrupt, word, v)
	if !logged.Swap(true) {
		go slog.Error("shoal: " + err.Error())
	}
	return err
}

// logged is whether this process has logged that its shared memory has garbage.
var logged atomic.Bool

// count returns the end of the indices in use, for those that look at every block: no more than
// there are headers with pages. A handle that was sent is compared with the word itself; its bits
// cannot name more blocks than there are headers.
func (d *Domain) count() uint64 {
	if n := d.hdr.blocks.Load(); n <= d.ready.Load() {
		return n
	}
	return min(d.hdr.blocks.Load(), d.headersReady())
}

// headersReady returns how many headers have pages, as far as this process has ever seen.
func (d *Domain) headersReady() uint64 {
	for {
		seen := d.ready.Load()
		ready := min(d.hdr.ready.Load(), uint64(len(d.blocks)))
		if ready <= seen || d.ready.CompareAndSwap(seen, ready) {
			return max(ready, seen)
		}
	}
}

// span returns where the bytes of a block lie and how many they can be. The lead of a slab carries
// the pages of all of it.
func (d *Domain) span(e uint64) (off, n uint64, err error) {
	off, n, ok := d.extent(e)
	if !ok {
		return 0, 0, corrupt("the extent of a block", e)
	}
	return off, n, nil
}

// extent is span for an observer, to whom a block may change while it reads: it says nothing of
// garbage.
func (d *Domain) extent(e uint64) (off, n uint64, ok bool) {
	c := extClass(e)
	if c >= classCount {
		return 0, 0, false
	}
	off, n = extOffset(e), extentSize(c)
	if e&extLead != 0 {
		n = slabSize
	}
	return off, n, c == 0 || off <= uint64(len(d.bytes)) && n <= uint64(len(d.bytes))-off
}

// pages returns the part [from, to) of a block's bytes, of which a lane record speaks.
func (d *Domain) pages(b *block, from, to uint64) (off, n uint64, err error) {
	off, n, err = d.span(b.ext.Load())
	switch {
	case err != nil:
		return 0, 0, err
	case from > to || to > n:
		return 0, 0, corrupt("the committed length of a block", max(from, to))
	}
	return off + from, to - from, nil
}
