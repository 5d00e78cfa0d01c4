package torch

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [What goes ahead] To fetch a descriptor (Note [Giving descriptors away]) costs a connection,
// a handshake and waits for a thread of the sender's: more than all the rest of a message. So Spawn
// also puts the text of ahead.py into the data that it gives a process. With ahead.py the
// connection to this process sends each descriptor, with a number, before the message, over a
// socket of its own. The message then promises the descriptor that this process's own sharer has by
// that number. The reader of the message finds it there. This process needs no connection for that.
// Another process, to which the message or the connection was passed on, fetches it as any other
// descriptor.
//
// No goroutine waits at that socket: a descriptor is there when its message is, and is read then.
// The queue of the socket bounds how many descriptors wait. When the queue is full, Python keeps
// further descriptors in its own sharer, as it does for those that go elsewhere. A descriptor that
// was sent ahead is in the kernel, or in this process, and needs its sender no more: it outlives a
// kill of the sender.

//go:embed ahead.py
var aheadCode string

// ahead are the descriptors that a process has sent before its messages.
type ahead struct {
	sharer *sharer
	first  int64 // the first key of the process
	mu     sync.Mutex
	socket *os.File
	came   []numbered // read, and not yet taken
	ended  *time.Timer
}

// A numbered file is one that came by a key.
type numbered struct {
	key  int64
	file *os.File
}

const (
	// maxCame is how many descriptors of messages that nobody has received are kept while later
	// messages are received. The oldest go first.
	maxCame = 1024
	// aheadKeys are how many keys a process has. A sharer's own keys are lower than those of the
	// first process.
	aheadKeys = 1 << 40
)

var aheads atomic.Int64

// newAhead returns the place to which a process of that authkey sends descriptors, and the
// process's end of the socket. The caller closes that end.
func newAhead(authkey []byte) (*ahead, *os.File, error) {
	s, err := sharerFor(authkey)
	if err != nil {
		return nil, nil, err
	}
	ours, theirs, err := sys.BlockingPair()
	if err != nil {
		return nil, nil, err
	}
	a := &ahead{sharer: s, first: aheads.Add(1) * aheadKeys, socket: ours}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead[a.first] = a
	return a, theirs, nil
}

// arrangement runs ahead.py, for a process that has its end of the socket and the connection on
// these descriptors.
func (a *ahead) arrangement(fd, conn int) *pickle.Object {
	return runPython(aheadCode, "torch/ahead.py",
		python.NewDict("fd", fd, "conn", conn, "address", a.sharer.address(), "key", a.first))
}

// take returns the descriptor of a key, once.
func (a *ahead) take(key int64) (*os.File, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := slices.IndexFunc(a.came, func(n numbered) bool { return n.key == key })
	if at < 0 {
		if err := a.readTo(key); err != nil {
			return nil, fmt.Errorf("descriptor %d has not come: %w", key, err)
		}
		at = len(a.came) - 1
	}
	f := a.came[at].file
	a.came = slices.Delete(a.came, at, at+1)
	a.endIfEmpty()
	return f, nil
}

// readTo reads until the descriptor of a key is the last of those that came. It returns ErrGone if
// the descriptor is missing.
func (a *ahead) readTo(key int64) error {
	for a.socket != nil {
		var number [8]byte
		n, files, err := sys.TakeFiles(a.socket, number[:], 1)
		if errors.Is(err, syscall.EAGAIN) || errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if n < len(number) || len(files) == 0 { // ahead.py sends no such message
			closeFiles(files)
			continue
		}
		if len(a.came) == maxCame {
			a.came[0].file.Close()
			a.came = slices.Delete(a.came, 0, 1)
		}
		a.came = append(a.came, numbered{int64(binary.BigEndian.Uint64(number[:])), files[0]})
		if a.came[len(a.came)-1].key == key {
			return nil
		}
	}
	return ErrGone
}

// end reads the descriptors that an ended process has left. They are kept as long as other promised
// descriptors.
func (a *ahead) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.readTo(-1) // to its end
	a.socket.Close()
	a.socket = nil
	a.ended = time.AfterFunc(keepFor, a.drop)
	a.endIfEmpty()
}

// drop closes the descriptors of an ended process that nobody has taken.
func (a *ahead) drop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range a.came {
		n.file.Close()
	}
	a.came = nil
	a.endIfEmpty()
}

// endIfEmpty forgets an ended process when all its descriptors were taken. It is called with the
// lock.
func (a *ahead) endIfEmpty() {
	if a.socket != nil || len(a.came) > 0 {
		return
	}
	a.ended.Stop()
	a.sharer.mu.Lock()
	defer a.sharer.mu.Unlock()
	delete(a.sharer.ahead, a.first)
}

// aheadOf returns the place to which the descriptor of a key was sent. The process's sharer of that
// authkey has promised the descriptor. aheadOf returns nil if it was not sent ahead.
func aheadOf(addr string, key int64, authkey []byte) *ahead {
	sharers.Lock()
	s := sharers.byKey[string(authkey)]
	sharers.Unlock()
	if s == nil || s.listener.Addr() != addr {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ahead[firstKey(key)]
}

// firstKey returns the first key of the process that has a key.
func firstKey(key int64) int64 { return key &^ (aheadKeys - 1) }
