package datasets

import (
	"iter"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/tensor"
)

// A List is a list of strings, or other byte records, in one block of memory. The garbage collector
// sees one object, for any number of records. All processes that receive the List read the same
// memory. Looking up a record takes two reads.
//
//	0   magic     "shoalrec"
//	8   records   uint64, number of records
//	16  entries   uint64, size of a Map's table; 0 in a List
//	24  data      uint64, offset of the bytes of the records
//	32  checksum  uint32, CRC-32C of bytes 40 to data
//	40  ends      uint64 for each record: its end, relative to data
//	    table     uint64 for each entry: number of the key's record + 1; 0 if unused
//	    data
//
// All numbers are little-endian. The memory of a List from [OpenList] is the mapped file and must
// not be written to. The caller must close a List.
type List struct{ records }

// records is the block of a List or a Map.
type records struct{ Block *tensor.Tensor }

// Save writes the records to a temporary file beside path and renames it to path once it is
// complete. [OpenList] maps the file of a List, and [OpenMap] the file of a Map, in any number of
// processes.
func (r *records) Save(path string) error { return save(path, r.Block) }

// Share moves the records to shared memory unless they are there already. The error wraps
// shm.ErrNoSpace if the domain is full.
func (r *records) Share() error { return r.Block.Share() }

// Close closes the memory in this process. Records that were returned before must not be used
// afterwards.
func (r *records) Close() error { return r.Block.Close() }

// marshal encodes the block.
func (r *records) marshal(e *codec.Encoder) error {
	plan, err := codec.PlanOf[*tensor.Tensor]()
	if err != nil {
		return err
	}
	return plan.Encode(e, r.Block)
}

// unmarshal decodes a block written by marshal.
func (r *records) unmarshal(d *codec.Decoder) error {
	plan, err := codec.PlanOf[*tensor.Tensor]()
	if err != nil {
		return err
	}
	r.Block, err = plan.Decode(d)
	return err
}

// NewList makes a List on the heap. [List.Share], or sending the List, moves it to shared
// memory. The caller must close the List.
func NewList[T string | []byte](of []T) *List { return &List{records{build(of, 0)}} }

// OpenList maps a file written by Save. It validates the index of the file, but not the bytes of
// the records. For a damaged file the error is an [*encoding.FileError] that wraps [ErrRecords].
func OpenList(path string) (*List, error) {
	t, err := openRecords(path, false)
	if err != nil {
		return nil, err
	}
	return &List{records{t}}, nil
}

// Len returns the number of records. It returns 0 after Close, and if the memory is damaged.
func (l *List) Len() int { return recordCount(l.Block) }

func recordCount(t *tensor.Tensor) (n int) {
	withIndex(t, func(x index) error { n = int(x.records); return nil })
	return n
}

// At returns record i. The result is memory of the List: it must not be modified, and must not be
// used after Close. The error wraps [ErrRecords] if i is out of range, or if the memory was damaged
// after it was validated.
func (l *List) At(i int) ([]byte, error) { return recordAt(l.Block, i) }

func recordAt(t *tensor.Tensor, i int) (record []byte, err error) {
	err = withIndex(t, func(x index) (err error) { record, err = x.recordAt(uint64(i)); return err })
	return record, err
}

// A Map maps string keys to records. It stores them in one block of memory, as a [List] does, with
// a hash table. The caller must close it.
type Map struct{ records }

// NewMap makes a Map on the heap. [Map.Share], or sending the Map, moves it to shared memory. If
// a key is repeated, the last record wins. The caller must close the Map.
func NewMap[T string | []byte](of iter.Seq2[string, T]) *Map {
	var all []string
	at := map[string]int{}
	for k, v := range of {
		if i, ok := at[k]; ok {
			all[i] = string(v)
			continue
		}
		at[k] = len(all) + 1
		all = append(all, k, string(v))
	}
	entries := 2
	for entries <= len(all) {
		entries *= 2
	}
	return &Map{records{build(all, entries)}}
}

// OpenMap maps a file written by Save. It validates the file and returns errors as [OpenList] does.
func OpenMap(path string) (*Map, error) {
	t, err := openRecords(path, true)
	if err != nil {
		return nil, err
	}
	return &Map{records{t}}, nil
}

// Len returns the number of keys. It returns 0 after Close, and if the memory is damaged.
func (m *Map) Len() int { return recordCount(m.Block) / 2 }

// Get returns the record of a key. ok is false if the key does not exist. The result is memory of
// the Map, with the same rules and errors as in [List.At].
func (m *Map) Get(key string) (record []byte, ok bool, err error) {
	err = withIndex(m.Block, func(x index) (err error) { record, ok, err = x.find(key); return err })
	return record, ok, err
}

// An Entry is a key of a [Map] and its record.
type Entry struct {
	Key    string
	Record []byte
}

// All yields the keys and records in the order of the sequence passed to [NewMap]. The records
// are memory of the Map, and the sequence ends with the first error, as in [List.At].
func (m *Map) All() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for i := range m.Len() {
			key, err := recordAt(m.Block, 2*i)
			e := Entry{Key: string(key)}
			if err == nil {
				e.Record, err = recordAt(m.Block, 2*i+1)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
