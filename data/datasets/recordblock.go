package datasets

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"runtime"
	"sync"

	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/internal/seed"
	"github.com/shoal-mp/shoal/tensor"
)

// ErrRecords is wrapped if a file or a block of memory is not a [List] or a [Map], or is damaged.
var ErrRecords = errors.New("data: invalid records")

const (
	recordsMagic = "shoalrec"
	recordsHead  = 40
)

var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// build returns a block of records on the heap, which the caller must close. If entries is not
// 0, every other record is a key, and the block gets a hash table with that number of entries,
// which must be a power of two. See [List] for the format.
func build[T string | []byte](records []T, entries int) *tensor.Tensor {
	data := recordsHead + 8*len(records) + 8*entries
	size := data
	for _, r := range records {
		size += len(r)
	}
	t := tensor.New(tensor.Uint8, size)
	b := tensor.Bytes(t)
	copy(b, recordsMagic)
	le := binary.LittleEndian
	le.PutUint64(b[8:], uint64(len(records)))
	le.PutUint64(b[16:], uint64(entries))
	le.PutUint64(b[24:], uint64(data))
	end := 0
	for i, r := range records {
		copy(b[data+end:], r)
		end += len(r)
		le.PutUint64(b[recordsHead+8*i:], uint64(end))
	}
	table := b[recordsHead+8*len(records) : data]
	for i := 0; entries > 0 && i < len(records); i += 2 {
		at := hashKey(records[i]) & uint64(entries-1)
		for le.Uint64(table[8*at:]) != 0 {
			at = (at + 1) & uint64(entries-1)
		}
		le.PutUint64(table[8*at:], uint64(i+1))
	}
	le.PutUint32(b[32:], crc32.Checksum(b[recordsHead:data], castagnoli()))
	runtime.KeepAlive(t)
	return t
}

// hashKey returns the FNV-1a hash of key with its bits mixed. It is the same in all processes.
func hashKey[T string | []byte](key T) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	return seed.Spread(h)
}

// check validates a block of a [List] or, if isMap is set, of a [Map]. It returns nil, or a
// [*recordError] that wraps [ErrRecords].
func check(t *tensor.Tensor, isMap bool) error {
	bad := func(offset int, format string, args ...any) error {
		return &recordError{offset, fmt.Errorf("%w: %s", ErrRecords, fmt.Sprintf(format, args...))}
	}
	if t == nil || t.DType() != tensor.Uint8 || t.Dims() != 1 || !t.IsContiguous() {
		return bad(0, "not a block of bytes")
	}
	b := tensor.Bytes(t)
	defer runtime.KeepAlive(t)
	if len(b) < recordsHead || string(b[:8]) != recordsMagic {
		return bad(0, "file does not start with %s", recordsMagic)
	}
	le := binary.LittleEndian
	n, entries, data, size := le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint64(b[24:]), uint64(len(b))
	switch {
	case n > size/8 || entries > size/8 || data != recordsHead+8*n+8*entries || data > size:
		return bad(8, "%d records and %d entries in %d bytes", n, entries, size)
	case (entries > 0) != isMap || entries&(entries-1) != 0 || isMap && (n%2 != 0 || entries <= n/2):
		return bad(16, "a table of %d entries for %d records", entries, n)
	case crc32.Checksum(b[recordsHead:data], castagnoli()) != le.Uint32(b[32:]):
		return bad(32, "wrong checksum of the index")
	}
	last := uint64(0)
	for i := range n {
		end := le.Uint64(b[recordsHead+8*i:])
		if end < last || end > size-data {
			return bad(int(recordsHead+8*i), "record %d ends at %d", i, end)
		}
		last = end
	}
	if last != size-data {
		return bad(len(b), "got %d bytes of records, want %d as in the index", size-data, last)
	}
	return nil
}

// A recordError is an error with its offset in a block.
type recordError struct {
	offset int
	err    error
}

func (e *recordError) Error() string { return e.err.Error() }
func (e *recordError) Unwrap() error { return e.err }

func openRecords(path string, isMap bool) (*tensor.Tensor, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open records: %w", err)
	}
	if st.Size() < recordsHead {
		return nil, &encoding.FileError{Path: path, Offset: st.Size(),
			Err: fmt.Errorf("%w: %d bytes", ErrRecords, st.Size())}
	}
	t, err := tensor.FromFile(path, tensor.Uint8, int(st.Size()))
	if err != nil {
		return nil, fmt.Errorf("open records: %w", err)
	}
	if err := check(t, isMap); err != nil {
		t.Close()
		e := new(recordError)
		errors.As(err, &e)
		return nil, &encoding.FileError{Path: path, Offset: int64(e.offset), Err: e.err}
	}
	return t, nil
}

// save writes a block to a file atomically.
func save(path string, t *tensor.Tensor) error {
	defer runtime.KeepAlive(t)
	return safefile.Replace(path, func(f *os.File) error {
		_, err := f.Write(tensor.Bytes(t))
		return err
	})
}

// An index is the header of a block, checked for plausible values. Damage that is done to the block
// later, by another process or in its file, causes errors and nothing worse.
type index struct {
	b       []byte
	records uint64
	entries uint64
	data    uint64
}

// withIndex calls f with the index of a block and returns f's error. It returns an error that
// wraps [ErrRecords] if the header is damaged or a page of the file cannot be read.
func withIndex(t *tensor.Tensor, f func(x index) error) error {
	var err error
	fault := tensor.Catch(func() {
		defer runtime.KeepAlive(t)
		var x index
		if x, err = indexOf(tensor.Bytes(t)); err == nil {
			err = f(x)
		}
	})
	if fault != nil {
		return fmt.Errorf("%w: %w", ErrRecords, fault)
	}
	return err
}

func indexOf(b []byte) (index, error) {
	size := uint64(len(b))
	if size < recordsHead {
		return index{}, fmt.Errorf("%w: %d bytes", ErrRecords, size)
	}
	le := binary.LittleEndian
	x := index{b, le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint64(b[24:])}
	if x.records > size/8 || x.entries > size/8 || x.entries&(x.entries-1) != 0 ||
		x.data != recordsHead+8*x.records+8*x.entries || x.data > size {
		return index{}, fmt.Errorf("%w: %d records and %d entries in %d bytes", ErrRecords, x.records, x.entries, size)
	}
	return x, nil
}

// recordAt returns record i as a slice of the block's memory. The error wraps [ErrRecords] if i
// is out of range or the index is damaged.
func (x index) recordAt(i uint64) ([]byte, error) {
	if i >= x.records {
		return nil, fmt.Errorf("%w: record %d is out of range [0, %d)", ErrRecords, i, x.records)
	}
	le := binary.LittleEndian
	from, to, records := uint64(0), le.Uint64(x.b[recordsHead+8*i:]), x.b[x.data:]
	if i > 0 {
		from = le.Uint64(x.b[recordsHead+8*(i-1):])
	}
	if from > to || to > uint64(len(records)) {
		return nil, fmt.Errorf("%w: record %d is bytes %d to %d of %d", ErrRecords, i, from, to, len(records))
	}
	return records[from:to:to], nil
}

// find returns the record of a key in a [Map], as a slice of its memory. ok is false if there is no
// such key. The error wraps [ErrRecords] if the memory is damaged.
func (x index) find(key string) (record []byte, ok bool, err error) {
	table := x.b[recordsHead+8*x.records:]
	for at, tried := hashKey(key)&(x.entries-1), uint64(0); tried < x.entries; at, tried = (at+1)&(x.entries-1),
		tried+1 {
		i := binary.LittleEndian.Uint64(table[8*at:])
		if i == 0 {
			return nil, false, nil
		}
		k, err := x.recordAt(i - 1)
		if err != nil {
			return nil, false, err
		}
		if string(k) == key {
			record, err = x.recordAt(i)
			return record, err == nil, err
		}
	}
	return nil, false, nil
}
