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

// Note [Descriptors sent ahead] Fetching a descriptor from a resource sharer (Note [Giving
// descriptors away]) costs a connection, a handshake and a wait for a thread of the sender: more
// than the rest of a message together. [Spawn] therefore also injects ahead.py into the process
// that it starts. When that process sends a message to this one over [Process.Conn], ahead.py first
// sends each descriptor, with a number, over a separate socket. The message then names the resource
// sharer of this process and that number, and the reader of the message finds the descriptor
// locally, without a connection. If the message or the connection is passed on to another process,
// that process fetches the descriptor from this one in the usual way.
//
// No goroutine reads the separate socket: a descriptor is sent before its message, so it can be
// read when the message is decoded. The capacity of the socket limits the number of unread
// descriptors. When it is full, Python keeps further descriptors in its own resource sharer, as it
// does for all other receivers. A descriptor sent ahead is in the kernel or in this process, and
// outlives a kill of its sender.

//go:embed ahead.py
var aheadCode string

// ahead receives the descriptors that one process started by [Spawn] sends ahead of its
// messages. newAhead makes it. Its methods may be called from several goroutines.
type ahead struct {
	sharer *sharer
	first  int64 // the first key of the process's range
	mu     sync.Mutex
	socket *os.File
	came   []numbered // descriptors that were read and not taken
	ended  *time.Timer
}

// numbered is a descriptor that was received ahead, and its key in the message that refers to
// it.
type numbered struct {
	key  int64
	file *os.File
}

const (
	// maxCame is the largest number of descriptors that are kept for messages which are not decoded
	// yet. If it is exceeded, the oldest is closed.
	maxCame = 1024
	// aheadKeys is the size of the key range of a process. The resource sharer's own keys are below
	// the first range.
	aheadKeys = 1 << 40
)

var aheads atomic.Int64

// newAhead creates the receiver for a process with the given authkey, and the process's end of
// the socket. The caller must close that end after the process has inherited it, and must call
// readRemaining once when the process has ended. The error wraps [ErrNoKey] if authkey is empty.
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

// aheadObject returns an object that runs ahead.py when it is unpickled. fd and conn are the
// numbers that the descriptors of the socket and of the connection have in the process.
func (a *ahead) aheadObject(fd, conn int) *pickle.Object {
	return runPython(aheadCode, "torch/ahead.py",
		python.NewDict("fd", fd, "conn", conn, "address", a.sharer.address(), "key", a.first))
}

// takeDescriptor returns the descriptor with the given key. The caller must close the file. A
// later call for the same key fails: the error wraps [ErrGone] if the descriptor has been taken
// already or was never sent.
func (a *ahead) takeDescriptor(key int64) (*os.File, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := slices.IndexFunc(a.came, func(n numbered) bool { return n.key == key })
	if at < 0 {
		if err := a.readTo(key); err != nil {
			return nil, fmt.Errorf("read up to descriptor %d: %w", key, err)
		}
		at = len(a.came) - 1
	}
	f := a.came[at].file
	a.came = slices.Delete(a.came, at, at+1)
	a.removeIfEmpty()
	return f, nil
}

// readTo reads the descriptors that have arrived into a.came, up to the one with the given key,
// which is then the last. It does not wait for more: it returns [ErrGone] if the key is not
// among them. The caller must hold a.mu.
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
		if n < len(number) || len(files) == 0 { // a malformed message, which ahead.py never sends
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

// readRemaining reads the remaining descriptors of an ended process and keeps them for keepFor,
// 10 minutes. It must be called once, after the process has ended.
func (a *ahead) readRemaining() {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.readTo(-1) // an invalid key, so it reads to EOF
	a.socket.Close()
	a.socket = nil
	a.ended = time.AfterFunc(keepFor, a.closeRemaining)
	a.removeIfEmpty()
}

// closeRemaining closes the descriptors that were read and not taken. It may be called several
// times, but only after readRemaining.
func (a *ahead) closeRemaining() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range a.came {
		n.file.Close()
	}
	a.came = nil
	a.removeIfEmpty()
}

// removeIfEmpty removes an ended process from its resource sharer when no descriptor is left. The
// caller must hold a.mu.
func (a *ahead) removeIfEmpty() {
	if a.socket != nil || len(a.came) > 0 {
		return
	}
	a.ended.Stop()
	a.sharer.mu.Lock()
	defer a.sharer.mu.Unlock()
	delete(a.sharer.ahead, a.first)
}

// aheadOf returns the receiver of the process that sent the descriptor with the given key ahead,
// or nil if it was not sent ahead. addr is the address of the resource sharer in the message,
// and authkey is its key.
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

// firstKey returns the first key of the range that contains key.
func firstKey(key int64) int64 { return key &^ (aheadKeys - 1) }
