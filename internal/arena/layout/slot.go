package layout

import (
	"encoding/binary"
	"structs"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena/word"
	"github.com/shoal-mp/shoal/shm"
)

// Slot holds one message. A message with at most one block and a body of at most 32 bytes, such as
// a number or a tensor, fits into the slot's first cache line.
type Slot struct {
	_ structs.HostLayout

	Word   word.Of[word.Slot] // lap 44 | span 3 | state 3 | lane 14
	Opseq  word.Word          // put number of the lane that wrote the message
	Meta   word.Word          // writing lane 32 | body length 16 | blocks 8 | flags 8
	First  word.Word          // handle of the first block
	Body   [SlotBody]byte
	Others [SlotBlocks - 1]word.Word // handles of the other blocks
}

// BlockWord returns the word with the handle of block i.
func (s *Slot) BlockWord(i int) *word.Word {
	if i == 0 {
		return &s.First
	}
	return &s.Others[i-1]
}

// Limits of a slot.
const (
	MaxBatch   = 128 // maximum number of messages of one put, which have one slot
	SlotBlocks = 4
	SlotBody   = 200
	SlotSize   = 256
	MetaSpill  = 1 // body and table of blocks are in a separate block, blocks[0]
)

// StoreEndWord stores w, the word that ends a put or get of the slot's message. order lists the
// indices of the message's blocks. The caller must then clear the stamps of these blocks and look
// at the waiters, and the store must be visible before that look. If there are blocks, the CAS that
// clears their stamps orders the two, so a plain [word.Word.Set] is enough.
func (s *Slot) StoreEndWord(w word.Slot, order []uint32) {
	if len(order) == 0 {
		s.Word.Store(w)
	} else {
		s.Word.Set(w)
	}
}

// BodyWords returns the body as words.
func (s *Slot) BodyWords() *[SlotBody / 8]word.Word {
	return (*[SlotBody / 8]word.Word)(unsafe.Pointer(&s.Body))
}

// SetLabel writes label, at most [SlotBody] bytes, to the slot's body, by words. The caller must
// have claimed the slot, and must set the length in Meta.
func (s *Slot) SetLabel(label []byte) {
	for i := 0; i < len(label); i += 8 {
		var b [8]byte
		copy(b[:], label[i:])
		s.BodyWords()[i/8].Set(binary.LittleEndian.Uint64(b[:]))
	}
}

// ReadLabel appends the slot's label to b, which should be empty. It returns [shm.ErrCorrupt] if
// the slot has no valid label; see [CheckLabel]. The label may change meanwhile, so the caller
// must compare the slot's word afterwards.
func (s *Slot) ReadLabel(b []byte) ([]byte, error) {
	b, err := s.ReadBody(b)
	if err == nil {
		err = CheckLabel(b)
	}
	return b, err
}

// CheckLabel returns [shm.ErrCorrupt] unless b begins with a name: one byte with the length of the
// name, and the name itself.
func CheckLabel(b []byte) error {
	if len(b) == 0 || int(b[0]) >= len(b) {
		return shm.ErrCorrupt
	}
	return nil
}

// ReadBody appends the slot's body to b, which must be empty. It reads the body by words, and
// returns [shm.ErrCorrupt] if its length is invalid. The body may change meanwhile, so the
// caller must compare the slot's word afterwards.
func (s *Slot) ReadBody(b []byte) ([]byte, error) {
	n := int(s.Meta.Load() >> 16 & 0xffff)
	if n > SlotBody {
		return nil, shm.ErrCorrupt
	}
	for i := 0; i < n; i += 8 {
		b = binary.LittleEndian.AppendUint64(b, s.BodyWords()[i/8].Load())
	}
	return b[:n], nil
}

// HasPrefix reports whether the slot's body begins with label, which must consist of a name's
// length and the name.
func (s *Slot) HasPrefix(label []byte) bool {
	for i := 0; i < len(label); i += 8 {
		var b [8]byte
		unused := 8 * (8 - copy(b[:], label[i:]))
		if (s.BodyWords()[i/8].Load()^binary.LittleEndian.Uint64(b[:]))<<unused != 0 {
			return false
		}
	}
	return true
}
