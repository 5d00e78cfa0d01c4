package sim

import (
	"bytes"
	"os"
)

// garbage is the byte that fills uninitialised memory. Programs are unlikely to write this value
// themselves.
const garbage = 0xdb

// littered is the size of the part of new memory that is filled with garbage completely. Of the
// rest, only one page of each granule is filled: enough for tests to notice, without backing all of
// a large segment with host memory.
const littered = 4 << 20

// fillGarbage fills n bytes of new device memory at off with garbage: the first 4 MiB
// completely, and of the rest one page of each 2 MiB.
func fillGarbage(f *os.File, off, n int64) error {
	b := bytes.Repeat([]byte{garbage}, int(min(n, littered)))
	if _, err := f.WriteAt(b, off); err != nil {
		return err
	}
	for at := int64(littered); at < n; at += granularity {
		if _, err := f.WriteAt(b[:min(page, n-at)], off+at); err != nil {
			return err
		}
	}
	return nil
}

// fillFreed fills freed memory with garbage.
func fillFreed(b []byte) {
	for i := range b {
		b[i] = garbage
	}
}
