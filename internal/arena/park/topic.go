package park

import (
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena/layout"
)

// A Topic names a bitmap of waiters in shared memory: the offset of the bitmap in its segment, with
// one of the bits below. A wakeup carries the topic of the waker's bitmap. So the participant tests
// only the conditions of the wait queues with that bitmap, however many queues it has.
type Topic = uint64

// Special topics.
const (
	AllTopics = Topic(0) // all wait queues
	NoTopic   = Topic(4) // no wait queue: only the header's counters have changed
)

// Bits of the topics of the segments. An offset is a multiple of 8.
const (
	inData    = Topic(1) // a bit of all topics of the data segment
	inControl = Topic(2) // the same for the control segment
)

// everyTopic is the result of reading the doorbell if a topic may have been missed.
var everyTopic = [1]Topic{AllTopics}

// TopicOf returns the topic of a bitmap.
func (p *Lot) TopicOf(bits *layout.Bitmap) Topic {
	at := uintptr(unsafe.Pointer(bits))
	if off := at - uintptr(unsafe.Pointer(unsafe.SliceData(p.mem.Data))); off < uintptr(len(p.mem.Data)) {
		return Topic(off) | inData
	}
	return Topic(at-uintptr(unsafe.Pointer(p.mem.Header))) | inControl
}
