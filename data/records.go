package data

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/shoal-mp/shoal/tensor"
)

// ErrRecords is returned where a file, or memory, does not hold a List or a Map, or is damaged.
var ErrRecords = errors.New("data: not records")

// A List is strings, or any records of bytes, in one block of memory: however many they are, the garbage collector sees one thing, and all processes to
// which the List is sent read the same memory. A record is found by its number in two reads, and is not decoded.
//
//	0   magic     "shoalrec"
//	8   records   uint64
//	16  slots     uint64, of a Map's table; 0 in a List
//	24  data      uint64, where the bytes of the records begin
//	32  checksum  uint32, CRC-32C of what is between here and there
//	40  ends      uint64 for each record: where it ends, from data on
//	    table     uint64 for each slot: the record that is a key, and 1 more; 0 if there is none
//	    data
//
// All numbers are little-endian. The memory of a List that was opened is its file's; nobody writes it.
type List struct{ Block *tensor.Tensor }

const (
	recordsMagic = "shoalrec"
	recordsHead  = 40
)

var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// NewList makes a List of records, on the heap: Share moves it, and so does sending it.
func NewList[T string | []byte](records []T) *List { return &List{build(records, 0)} }

// build lays out records, and a table of so many slots for those that are keys: every other one.
func build[T string | []byte](records []T, slots int) *tensor.Tensor {
	data := recordsHead + 8*len(records) + 8*slots
	size := data
	for _, r := range records {
		size += len(r)
	}
	t := tensor.Empty(tensor.Uint8, size)
	b := tensor.Bytes(t)
	copy(b, recordsMagic)
	le := binary.LittleEndian
	le.PutUint64(b[8:], uint64(len(records)))
	le.PutUint64(b[16:], uint64(slots))
	le.PutUint64(b[24:], uint64(data))
	end := 0
	for i, r := range records {
		copy(b[data+end:], r)
		end += len(r)
		le.PutUint64(b[recordsHead+8*i:], uint64(end))
	}
	table := b[recordsHead+8*len(records) : data]
	for i := 0; slots > 0 && i < len(records); i += 2 {
		at := hash(records[i]) & uint64(slots-1)
		for le.Uint64(table[8*at:]) != 0 {
			at = (at + 1) & uint64(slots-1)
		}
		le.PutUint64(table[8*at:], uint64(i+1))
	}
	le.PutUint32(b[32:], crc32.Checksum(b[recordsHead:data], castagnoli()))
	runtime.KeepAlive(t)
	return t
}

// hash is FNV-1a with its bits mixed, the same in all processes.
func hash[T string | []byte](key T) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	return mix(h)
}

// check returns what is wrong with a block.
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
		return bad(0, "the first bytes are not %s", recordsMagic)
	}
	le := binary.LittleEndian
	n, slots, data, size := le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint64(b[24:]), uint64(len(b))
	switch {
	case n > size/8 || slots > size/8 || data != recordsHead+8*n+8*slots || data > size:
		return bad(8, "%d records and %d slots in %d bytes", n, slots, size)
	case (slots > 0) != isMap || slots&(slots-1) != 0 || isMap && (n%2 != 0 || slots <= n/2):
		return bad(16, "a table of %d slots for %d records", slots, n)
	case crc32.Checksum(b[recordsHead:data], castagnoli()) != le.Uint32(b[32:]):
		return bad(32, "the checksum of the index")
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
		return bad(len(b), "%d bytes of records, where the index has %d", size-data, last)
	}
	return nil
}

// A recordError knows where in a block something is wrong.
type recordError struct {
	offset int
	err    error
}

func (e *recordError) Error() string { return e.err.Error() }
func (e *recordError) Unwrap() error { return e.err }

// OpenList maps a file that Save wrote. A file that is damaged is a [*FileError] that wraps ErrRecords; its index is checked here, its records, which
// may be anything, are not.
func OpenList(path string) (*List, error) {
	t, err := openRecords(path, false)
	if err != nil {
		return nil, err
	}
	return &List{t}, nil
}

func openRecords(path string, isMap bool) (*tensor.Tensor, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open records: %w", err)
	}
	if st.Size() < recordsHead {
		return nil, &FileError{path, st.Size(), fmt.Errorf("%w: %d bytes", ErrRecords, st.Size())}
	}
	t, err := tensor.FromFile(path, false, tensor.Uint8, int(st.Size()))
	if err != nil {
		return nil, fmt.Errorf("open records: %w", err)
	}
	if err := check(t, isMap); err != nil {
		t.Close()
		e := new(recordError)
		errors.As(err, &e)
		return nil, &FileError{path, int64(e.offset), e.err}
	}
	return t, nil
}

// save writes a block to a file, whole or not at all.
func save(path string, t *tensor.Tensor) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".records-*")
	if err != nil {
		return fmt.Errorf("save records: %w", err)
	}
	_, err = f.Write(tensor.Bytes(t))
	runtime.KeepAlive(t)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("save records: %w", err)
	}
	return nil
}

// Save writes the List to a file that OpenList maps, in any number of processes.
func (l *List) Save(path string) error { return save(path, l.Block) }

// Share moves the records to shared memory, once.
func (l *List) Share() error { return l.Block.Share() }

// Close drops this process's hold of the memory. What At returned must not be used then.
func (l *List) Close() error { return l.Block.Close() }

// Len returns the number of records.
func (l *List) Len() int { return recordsIn(l.Block) }

func recordsIn(t *tensor.Tensor) int {
	b := tensor.Bytes(t)
	defer runtime.KeepAlive(t)
	return int(binary.LittleEndian.Uint64(b[8:]))
}

// At returns record i, in the memory of the List: it is not to be written, and not to be used after Close. It panics if i is out of range.
func (l *List) At(i int) []byte { return recordAt(l.Block, i) }

func recordAt(t *tensor.Tensor, i int) []byte {
	b := tensor.Bytes(t)
	defer runtime.KeepAlive(t)
	le := binary.LittleEndian
	if n := int(le.Uint64(b[8:])); i < 0 || i >= n {
		panic(fmt.Sprintf("data: record %d of %d", i, n))
	}
	from, records := uint64(0), b[le.Uint64(b[24:]):]
	if i > 0 {
		from = le.Uint64(b[recordsHead+8*(i-1):])
	}
	to := le.Uint64(b[recordsHead+8*i:])
	return records[from:to:to]
}

// All returns the records in order. See At.
func (l *List) All() iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		for i := range l.Len() {
			if !yield(i, l.At(i)) {
				return
			}
		}
	}
}

// A Map is records that are found by a key, in one block of memory like a List, with a table of hashes.
type Map struct{ Block *tensor.Tensor }

// NewMap makes a Map of records, on the heap. A key that comes again replaces the one before.
func NewMap[T string | []byte](records iter.Seq2[string, T]) *Map {
	var all []string
	at := map[string]int{}
	for k, v := range records {
		if i, ok := at[k]; ok {
			all[i] = string(v)
			continue
		}
		at[k] = len(all) + 1
		all = append(all, k, string(v))
	}
	slots := 2
	for slots <= len(all) {
		slots *= 2
	}
	return &Map{build(all, slots)}
}

// OpenMap maps a file that Save wrote. See OpenList.
func OpenMap(path string) (*Map, error) {
	t, err := openRecords(path, true)
	if err != nil {
		return nil, err
	}
	return &Map{t}, nil
}

// Save writes the Map to a file that OpenMap maps.
func (m *Map) Save(path string) error { return save(path, m.Block) }

// Share moves the records to shared memory, once.
func (m *Map) Share() error { return m.Block.Share() }

// Close drops this process's hold of the memory. What Get returned must not be used then.
func (m *Map) Close() error { return m.Block.Close() }

// Len returns the number of keys.
func (m *Map) Len() int { return recordsIn(m.Block) / 2 }

// Get returns the record of a key, in the memory of the Map; see List.At.
func (m *Map) Get(key string) (record []byte, ok bool) {
	b := tensor.Bytes(m.Block)
	defer runtime.KeepAlive(m.Block)
	le := binary.LittleEndian
	n, slots := le.Uint64(b[8:]), le.Uint64(b[16:])
	table := b[recordsHead+8*n:]
	for at, tried := hash(key)&(slots-1), uint64(0); tried < slots; at, tried = (at+1)&(slots-1), tried+1 {
		i := le.Uint64(table[8*at:])
		if i == 0 || i >= n {
			break
		}
		if string(recordAt(m.Block, int(i-1))) == key {
			return recordAt(m.Block, int(i)), true
		}
	}
	return nil, false
}

// All returns the keys and records, in the order in which NewMap was given them. See Get.
func (m *Map) All() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for i := range m.Len() {
			if !yield(string(recordAt(m.Block, 2*i)), recordAt(m.Block, 2*i+1)) {
				return
			}
		}
	}
}
