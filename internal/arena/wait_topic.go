package arena

import (
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena/layout"
)

// A topic names a bitmap of waiters in shared memory: the offset of the bitmap in its segment, with
// one of the bits below. A wakeup carries the topic of the bitmap in which the waker has found the
// participant. So the participant tests only the conditions of the wait queues with that bitmap,
// however many queues it has.
type topic = uint64

// Topics of the segments, and special topics. An offset is a multiple of 8.
const (
	allTopics = topic(0) // all wait queues
	inData    = topic(1) // a bit of all topics of the data segment
	inControl = topic(2) // the same for the control segment
	noTopic   = topic(4) // no wait queue: only the header's counters have changed
)

// everyTopic is the result of reading the doorbell if a topic may have been missed.
var everyTopic = [1]topic{allTopics}

// topicOf returns the topic of a bitmap.
func (d *Domain) topicOf(bits *layout.Bitmap) topic {
	p := uintptr(unsafe.Pointer(bits))
	if at := p - uintptr(unsafe.Pointer(unsafe.SliceData(d.mem.Data))); at < uintptr(len(d.mem.Data)) {
		return topic(at) | inData
	}
	return topic(p-uintptr(unsafe.Pointer(d.mem.Header))) | inControl
}
