package sim

import (
	"bytes"
	"os"
)

// What fresh memory holds: no number that a program would take for one of its own.
const garbage = 0xdb

// Fresh memory is garbage to this size, and behind it a page of every granule is: so much of a
// large segment as no test would overlook, without the host's memory for all of it.
const littered = 4 << 20

// scatter fills n fresh bytes of a device with garbage.
func scatter(f *os.File, off, n int64) error {
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

// litter fills memory that is given back.
func litter(b []byte) {
	for i := range b {
		b[i] = garbage
	}
}
