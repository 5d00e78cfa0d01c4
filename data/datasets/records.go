package datasets

import (
	"iter"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/tensor"
)

// A List has strings, or other records of bytes, in one block of memory. The garbage collector sees
// one object, whatever the number of records. All processes to which the List is sent read the same
// memory. Two reads find a record by its number.
//
//	0   magic     "shoalrec"
//	8   records   uint64
//	16  entries   uint64, of a Map's table; 0 in a List
//	24  data      uint64, where the bytes of the records begin
//	32  checksum  uint32, CRC-32C of what is between here and there
//	40  ends      uint64 for each record: where it ends, from data on
//	    table     uint64 for each entry: the record that is a key, and 1 more; 0 if there is none
//	    data
//
// All numbers are little-endian. The memory of a List of OpenList is the file: do not write to it.
// The caller closes a List.
type List struct{ records }

// records are the block of a List or a Map.
type records struct{ Block *tensor.Tensor }

// Save writes the records to a temporary file beside path, and renames it to path when it is whole.
// OpenList maps the file of a List, and OpenMap that of a Map, in any number of processes.
func (r *records) Save(path string) error { return save(path, r.Block) }

// Share moves the records to shared memory, if they are not there yet. The error wraps
// shm.ErrNoSpace if the domain is full.
func (r *records) Share() error { return r.Block.Share() }

// Close closes the memory in this process. Do not use records that were returned before.
func (r *records) Close() error { return r.Block.Close() }

// marshal writes the block.
func (r *records) marshal(e *codec.Encoder) error {
	plan, err := codec.PlanOf[*tensor.Tensor]()
	if err != nil {
		return err
	}
	return plan.Encode(e, r.Block)
}

// unmarshal reads what marshal wrote.
func (r *records) unmarshal(d *codec.Decoder) error {
	plan, err := codec.PlanOf[*tensor.Tensor]()
	if err != nil {
		return err
	}
	r.Block, err = plan.Decode(d)
	return err
}

// NewList makes a List on the heap. Share, or sending it, moves it to shared memory.
func NewList[T string | []byte](of []T) *List { return &List{records{build(of, 0)}} }

// OpenList maps a file that Save wrote. It checks the index of the file, and not the bytes of the
// records. For a damaged file the error is an [*encoding.FileError] that wraps ErrRecords.
func OpenList(path string) (*List, error) {
	t, err := openRecords(path, false)
	if err != nil {
		return nil, err
	}
	return &List{records{t}}, nil
}

// Len returns the number of records. It is 0 after Close, and if the memory was damaged.
func (l *List) Len() int { return recordsIn(l.Block) }

func recordsIn(t *tensor.Tensor) (n int) {
	look(t, func(x index) error { n = int(x.records); return nil })
	return n
}

// At returns record i, in the memory of the List: do not write to it, and do not use it after
// Close. The error wraps ErrRecords if i is out of range, or if the memory was damaged after the
// check.
func (l *List) At(i int) ([]byte, error) { return recordAt(l.Block, i) }

func recordAt(t *tensor.Tensor, i int) (record []byte, err error) {
	err = look(t, func(x index) (err error) { record, err = x.at(uint64(i)); return err })
	return record, err
}

// A Map has records with string keys in one block of memory, as a List has, and a table of hashes
// to find them. The caller closes it.
type Map struct{ records }

// NewMap makes a Map on the heap. A key that comes again replaces the record before.
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

// OpenMap maps a file that Save wrote. Checks and errors are those of [OpenList].
func OpenMap(path string) (*Map, error) {
	t, err := openRecords(path, true)
	if err != nil {
		return nil, err
	}
	return &Map{records{t}}, nil
}

// Len returns the number of keys.
func (m *Map) Len() int { return recordsIn(m.Block) / 2 }

// Get returns the record of a key, in the memory of the Map. ok is false if the Map does not have
// the key. For the use of the record, and the error, see [List.At].
func (m *Map) Get(key string) (record []byte, ok bool, err error) {
	err = look(m.Block, func(x index) (err error) { record, ok, err = x.find(key); return err })
	return record, ok, err
}

// An Entry is a key of a Map with its record.
type Entry struct {
	Key    string
	Record []byte
}

// All yields the keys and records, in the order in which NewMap got them. An error, as of
// [List.At], ends the sequence.
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
