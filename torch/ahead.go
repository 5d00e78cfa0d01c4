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
// a handshake and waits for a thread of the sender's: more than all the rest of a message. What
// Spawn tells a process also contains the text of ahead.py. It has the connection to this process
// send each descriptor before the message, over a socket of its own, by a number; the message then
// promises what this process's own sharer has by that number. So the reader of the message finds
// it: this process without a connection, and another one, to which the message or the connection
// was passed on, as ever.
//
// Nobody waits at that socket: what came before a message is there when the message is, and is read
// then. Its queue is what bounds how many descriptors wait; where it is full Python keeps them in
// its own sharer, as it does for all that goes elsewhere. What was sent ahead is in the kernel, or
// here, and needs its sender no more: it outlives a kill as well.

//go:embed ahead.py
var aheadCode string

// ahead are the descriptors that a process has sent before its messages.
type ahead struct {
	sharer *sharer
	first  int64 // key; those of the process are from it on
	mu     sync.Mutex
	socket *os.File
	came   []numbered // read, and not taken yet
	ended  *time.Timer
}

// A numbered file is one that came by a key.
type numbered struct {
	key  int64
	file *os.File
}

const (
	// maxCame is how many descriptors of messages that nobody has received wait for those who
	// receive later ones. The oldest go first.
	maxCame = 1024
	// aheadKeys are how many keys a process has. A sharer gives lower ones than the first process's
	// itself.
	aheadKeys = 1 << 40
)

var aheads atomic.Int64

// newAhead returns where a process of that authkey sends descriptors, and its end of the socket,
// which the caller closes.
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

// readTo reads until the descriptor of a key is the last of those that came; ErrGone where there is
// none.
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
		if n < len(number) || len(files) == 0 { // ahead.py sends no such thing
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

// end reads what a process has left that has ended. It waits as what else was promised does.
func (a *ahead) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.readTo(-1) // to its end
	a.socket.Close()
	a.socket = nil
	a.ended = time.AfterFunc(keepFor, a.drop)
	a.endIfEmpty()
}

// drop closes what nobody will take of a process that has ended.
func (a *ahead) drop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range a.came {
		n.file.Close()
	}
	a.came = nil
	a.endIfEmpty()
}

// endIfEmpty forgets a process that has ended, when all was taken. It is called with the lock.
func (a *ahead) endIfEmpty() {
	if a.socket != nil || len(a.came) > 0 {
		return
	}
	a.ended.Stop()
	a.sharer.mu.Lock()
	defer a.sharer.mu.Unlock()
	delete(a.sharer.ahead, a.first)
}

// aheadOf returns where the descriptor of a key was sent that this process's sharer of that authkey
// has promised, nil if it was not.
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

// firstKey is that of the process which has a key.
func firstKey(key int64) int64 { return key &^ (aheadKeys - 1) }
