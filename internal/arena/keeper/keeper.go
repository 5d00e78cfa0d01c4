package keeper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/internal/arena/word"
	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [Kept descriptors] A message cannot hold a file descriptor. So a process must keep a file
// open while it is in transit, when its sender may have ended and its receiver may not have started
// yet. This process, the keeper, is the one that made the domain. The processes that it has started
// do not outlive it; a process that does gets [shm.ErrKeeper]. The memory of a device is kept as a
// file as well.
//
// Each file is named by a block of the domain. The processes that use the file hold the block, and
// so do the messages that carry the file. When the block has no holder left, no further process can
// ask for the file, and the keeper must close it. The keeper looks for such blocks when a client
// asks it to, when a client has disconnected, after a dead process was reaped, and periodically,
// because a message may be dropped by a process that knows nothing of files. So the keeper needs no
// reference counts of its own, and misses no death.

const (
	// reapAgain is the interval between attempts while another process holds the recovery lock.
	reapAgain = 10 * time.Millisecond
	// The keeper looks for dropped blocks sweepOften after a file came, and then at growing
	// intervals, up to sweepSeldom.
	sweepOften, sweepSeldom = 10 * time.Millisecond, time.Second
	// maxKept is the maximum number of kept files. A domain that reaches it has lost its receivers,
	// or they are too slow.
	maxKept = 1 << 12
)

// A Domain is the domain that a [Keeper] keeps files for. Its methods may be called from several
// goroutines.
type Domain interface {
	Token() [16]byte // unique to the domain
	// Stale reports whether a block has been freed.
	Stale(word.Handle) bool
	// Reap frees the blocks of dead participants and returns the number of these. It returns 0
	// while another process does so.
	Reap() (int, error)
	// Unreaped reports whether dead participants are left.
	Unreaped() (bool, error)
}

// A Keeper keeps the files of a domain, in the process that made it.
type Keeper struct {
	d    Domain
	sock *sys.Listener
	done sync.WaitGroup
	end  context.CancelFunc
	ctx  context.Context
	more chan struct{} // signals that a file has come

	mu    sync.Mutex
	kept  map[word.Handle]kept
	lines map[*line]bool
}

// A kept is a file and its note.
type kept struct {
	file *os.File
	note Note
}

// New starts the keeper of domain d. The caller must close it. The error wraps EADDRINUSE if the
// domain has a keeper already.
func New(d Domain) (*Keeper, error) {
	sock, err := sys.Listen(Address(d))
	if err != nil {
		return nil, fmt.Errorf("keep the descriptors of the domain: %w", err)
	}
	k := &Keeper{d: d, sock: sock, kept: map[word.Handle]kept{}, lines: map[*line]bool{}, more: make(chan struct{}, 1)}
	k.ctx, k.end = context.WithCancel(context.Background())
	k.done.Go(func() { sys.Accept(sock.Accept, k.acceptConn) })
	return k, nil
}

// Close closes all files and connections, and waits for the goroutines that serve clients.
func (k *Keeper) Close() error {
	k.end()
	err := k.sock.Close()
	k.mu.Lock()
	for l := range k.lines {
		err = errors.Join(err, l.conn.Close())
	}
	for b, m := range k.kept {
		err = errors.Join(err, m.file.Close())
		delete(k.kept, b)
	}
	k.lines = nil
	k.mu.Unlock()
	k.done.Wait()
	return err
}

// acceptConn serves a new connection in a goroutine. It takes ownership of c.
func (k *Keeper) acceptConn(c *sys.Conn) {
	l := &line{conn: c}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lines == nil {
		c.Close()
		return
	}
	k.lines[l] = true
	k.done.Go(func() { k.serveClient(l) })
}

// serveClient answers the requests of one client until it disconnects, and then closes l. It serves
// processes of this user only. Then serveClient waits until the client's process has ended, and
// reaps until its blocks are free, so that the client's files can be closed. It also returns when
// the keeper is closed. The pidfd of the peer comes from SO_PEERPIDFD, so it cannot refer to a
// later process with the same ID: https://github.com/torvalds/linux/blob/v6.12/net/core/sock.c.
func (k *Keeper) serveClient(l *line) {
	defer k.closeStaleFiles()
	if uid, _, err := sys.PeerUID(l.conn); err != nil || uid != os.Getuid() {
		k.closeLine(l)
		return
	}
	peer, err := sys.PeerPidfd(l.conn)
	if err == nil {
		defer peer.Close()
	}
	for {
		r, f, err := l.receiveRecord()
		if err != nil && !errors.Is(err, sys.ErrNoDescriptors) || k.handleRequest(l, r, f, err) != nil {
			break
		}
	}
	k.closeLine(l)
	k.closeStaleFiles()
	if peer == nil || peer.Wait(k.ctx) != nil {
		return
	}
	for k.ctx.Err() == nil {
		k.d.Reap()
		if more, err := k.d.Unreaped(); !more || err != nil {
			return
		}
		time.Sleep(reapAgain) // another process is reaping
	}
}

// closeLine closes a connection. It may be called more than once.
func (k *Keeper) closeLine(l *line) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lines[l] {
		delete(k.lines, l)
		l.conn.Close()
	}
}

// handleRequest handles one request. f is the file that came with it, or nil; handleRequest takes
// ownership of it. lost is not nil if the file was lost because this process has no descriptors
// left. An error ends the connection.
func (k *Keeper) handleRequest(l *line, r record, f *os.File, lost error) error {
	if r.op == opKeep {
		op := uint64(opFull)
		if lost == nil {
			op = k.storeFile(r, f)
		}
		return l.sendRecord(record{op: op, block: r.block})
	}
	if f != nil {
		f.Close()
	}
	switch r.op {
	case opFetch:
		return k.sendFile(l, r.block)
	case opSweep:
		k.closeStaleFiles()
		return l.sendRecord(record{op: opDone})
	case opWatch:
		k.mu.Lock()
		l.watches = true
		k.mu.Unlock()
		return l.sendRecord(record{op: opDone})
	}
	return fmt.Errorf("operation %d", r.op)
}

// storeFile stores the file of a record and returns the operation code of the answer. It takes
// ownership of f. It refuses a block that is stale or has a file already, and more than [maxKept]
// files.
func (k *Keeper) storeFile(r record, f *os.File) uint64 {
	if f == nil {
		return opUnknown
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	_, known := k.kept[r.block]
	if known || k.lines == nil || k.d.Stale(r.block) {
		f.Close()
		return opUnknown
	}
	if len(k.kept) == maxKept {
		f.Close()
		return opFull
	}
	if len(k.kept) == 0 {
		k.done.Go(k.watchDropped)
	}
	k.kept[r.block] = kept{f, r.note}
	select {
	case k.more <- struct{}{}:
	default:
	}
	return opDone
}

// watchDropped looks for dropped blocks as long as there are files. The interval restarts from its
// shortest value when a file comes, because most files are fetched at once.
func (k *Keeper) watchDropped() {
	for pause := sweepOften; ; pause = min(2*pause, sweepSeldom) {
		select {
		case <-k.ctx.Done():
			return
		case <-k.more:
			pause = sweepOften / 2
		case <-time.After(pause):
		}
		if k.closeStaleFiles() == 0 {
			return
		}
	}
}

// sendFile answers with the file of block b, or with opUnknown if it has no such file. It sends a
// duplicate, because a sweep may close the file meanwhile. The error means that the connection has
// failed.
func (k *Keeper) sendFile(l *line, b word.Handle) error {
	k.mu.Lock()
	m, ok := k.kept[b]
	fd := -1
	var err error
	if ok {
		fd, err = sys.Duplicate(m.file)
	}
	k.mu.Unlock()
	if !ok || err != nil {
		return l.sendRecord(record{op: opUnknown, block: b})
	}
	f := os.NewFile(uintptr(fd), "kept")
	defer f.Close()
	return l.sendRecord(record{op: opDone, block: b, note: m.note}, f)
}

// closeStaleFiles closes the files of blocks that have no holder left, and tells the clients that
// watch. It returns the number of remaining files. The caller must not hold k.mu. A client that is
// stopped may block a send for as long as [patience], so k.mu is not held then.
func (k *Keeper) closeStaleFiles() (left int) {
	var stale []word.Handle
	var watchers []*line
	k.mu.Lock()
	for b, m := range k.kept {
		if k.d.Stale(b) {
			m.file.Close()
			delete(k.kept, b)
			stale = append(stale, b)
		}
	}
	for l := range k.lines {
		if l.watches {
			watchers = append(watchers, l)
		}
	}
	left = len(k.kept)
	k.mu.Unlock()
	for _, l := range watchers {
		for _, b := range stale {
			if l.sendRecord(record{op: opDropped, block: b}) != nil {
				k.mu.Lock()
				delete(k.lines, l)
				k.mu.Unlock()
				l.conn.Close()
				break
			}
		}
	}
	return left
}
