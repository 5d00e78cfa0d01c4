package cuda

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/shm"
)

// A record is what the keeper and its clients say to each other, at times with a file. Of the operations, keep, fetch and sweep ask,
// done and unknown answer, and dropped is said to everybody without being asked.
type record struct {
	op      uint64
	segment shm.Handle
	size    uint64
	uuid    [16]byte
}

const (
	opKeep    = iota + 1 // keep the file, which is the memory of a segment
	opFetch              // give it
	opSweep              // look whose segment nobody uses any more
	opDone               // so it is, with the file that was asked for
	opUnknown            // there is no such segment
	opDropped            // nobody uses this segment any more

	recordSize = 40
)

// patience is how long the other side of a connection may take.
const patience = 30 * time.Second

// keeperAddress is where the process that made a domain listens.
func keeperAddress(d *shm.Domain) string { return fmt.Sprintf("@shoal/%x/cuda", d.Token()) }

// A line is one end of a connection.
type line struct {
	conn *sys.Conn
	mu   sync.Mutex // of saying
}

func (l *line) say(r record, files ...*os.File) error {
	b := make([]byte, 0, recordSize)
	b = binary.LittleEndian.AppendUint64(b, r.op)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.segment))
	b = binary.LittleEndian.AppendUint64(b, r.size)
	b = append(b, r.uuid[:]...)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	return sys.SendFiles(l.conn, b, files...)
}

// hear waits for the next record. The caller closes the file, if there is one.
func (l *line) hear() (r record, f *os.File, err error) {
	b := make([]byte, recordSize)
	n, files, err := sys.RecvFiles(l.conn, b, 1)
	if len(files) > 0 {
		f = files[0]
	}
	if err == nil {
		_, err = io.ReadFull(l.conn, b[n:])
	}
	if err != nil {
		if f != nil {
			f.Close()
		}
		return r, nil, err
	}
	r.op = binary.LittleEndian.Uint64(b)
	r.segment = shm.Handle(binary.LittleEndian.Uint64(b[8:]))
	r.size = binary.LittleEndian.Uint64(b[16:])
	copy(r.uuid[:], b[24:])
	return r, f, nil
}
