package arena

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [Who keeps a descriptor] A message cannot hold a descriptor. So some process must keep a
// file open while it is under way, when its sender may have ended and its receiver may not have
// begun. That process is the one that made the domain, the keeper: without it the other processes
// of the domain have ended as well. The memory of a device is such a file. Each file is named by a
// block of the domain. Processes that use the file hold the block, and so do messages with the
// file. When nobody holds the block, no further process can ask for the file, and the keeper closes
// it. The keeper looks for such blocks when a client asks it to, when a client has let go of its
// last block, after a process was reaped, and now and then: a message may be dropped by a process
// that knows nothing of files. So the keeper counts nothing, and it misses no death.

const (
	// keeperAgain is when to try once more where another process holds the recovery lock.
	keeperAgain = 10 * time.Millisecond
	// The keeper looks for blocks that nobody holds keeperOften after a file came, and then less
	// and less often, each keeperSeldom at last.
	keeperOften, keeperSeldom = 10 * time.Millisecond, time.Second
	// maxKept is how many files a keeper has at most. A domain with more has lost its receivers, or
	// they are too slow.
	maxKept = 1 << 12
)

// keeper keeps the files of a domain.
type keeper struct {
	d    *Domain
	sock *sys.Listener
	done sync.WaitGroup
	end  context.CancelFunc
	ctx  context.Context
	more chan struct{} // a file has come

	mu    sync.Mutex
	kept  map[Handle]kept
	lines map[*line]bool
}

type kept struct {
	file *os.File
	note Note
}

func newKeeper(d *Domain) (*keeper, error) {
	sock, err := sys.Listen(keeperAddress(d))
	if err != nil {
		return nil, fmt.Errorf("keep the descriptors of the domain: %w", err)
	}
	k := &keeper{d: d, sock: sock, kept: map[Handle]kept{}, lines: map[*line]bool{}, more: make(chan struct{}, 1)}
	k.ctx, k.end = context.WithCancel(context.Background())
	k.done.Go(func() { sys.Accept(sock.Accept, k.greet) })
	return k, nil
}

// Close closes all files and waits until the last client is served.
func (k *keeper) Close() error {
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

// greet serves a new connection on a goroutine of its own.
func (k *keeper) greet(c *sys.Conn) {
	l := &line{conn: c}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lines == nil {
		c.Close()
		return
	}
	k.lines[l] = true
	k.done.Go(func() { k.serve(l) })
}

// serve answers one process, and goes on after that has ended until its blocks are taken back.
func (k *keeper) serve(l *line) {
	defer k.sweep()
	if uid, _, err := sys.PeerUID(l.conn); err != nil || uid != os.Getuid() {
		k.hangUp(l)
		return
	}
	peer, err := sys.PeerPidfd(l.conn)
	if err == nil {
		defer peer.Close()
	}
	for {
		r, f, err := l.hear()
		if err != nil && !errors.Is(err, sys.ErrNoDescriptors) || k.answer(l, r, f, err) != nil {
			break
		}
	}
	k.hangUp(l)
	k.sweep()
	if peer == nil || peer.Wait(k.ctx) != nil {
		return
	}
	for k.ctx.Err() == nil {
		k.d.Reap()
		if more, err := k.d.Unreaped(); !more || err != nil {
			return
		}
		time.Sleep(keeperAgain) // another process reaps
	}
}

func (k *keeper) hangUp(l *line) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lines[l] {
		delete(k.lines, l)
		l.conn.Close()
	}
}

// answer does what a record asks for. lost reports that the record's file did not come.
func (k *keeper) answer(l *line, r record, f *os.File, lost error) error {
	if r.op == opKeep {
		op := uint64(opFull)
		if lost == nil {
			op = k.keep(r, f)
		}
		return l.say(record{op: op, block: r.block})
	}
	if f != nil {
		f.Close()
	}
	switch r.op {
	case opFetch:
		return k.give(l, r.block)
	case opSweep:
		k.sweep()
		return l.say(record{op: opDone})
	case opWatch:
		k.mu.Lock()
		l.watches = true
		k.mu.Unlock()
		return l.say(record{op: opDone})
	}
	return fmt.Errorf("operation %d", r.op)
}

// keep takes the file, unless there is one already, and returns what to answer.
func (k *keeper) keep(r record, f *os.File) uint64 {
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
		k.done.Go(k.watch)
	}
	k.kept[r.block] = kept{f, r.note}
	select {
	case k.more <- struct{}{}:
	default:
	}
	return opDone
}

// watch looks now and then for blocks that nobody holds, as long as there are files. It looks soon
// after a file has come, since most files are fetched at once.
func (k *keeper) watch() {
	for pause := keeperOften; ; pause = min(2*pause, keeperSeldom) {
		select {
		case <-k.ctx.Done():
			return
		case <-k.more:
			pause = keeperOften / 2
		case <-time.After(pause):
		}
		if k.sweep() == 0 {
			return
		}
	}
}

// give sends a duplicate of a file, so that the file may be closed meanwhile.
func (k *keeper) give(l *line, b Handle) error {
	k.mu.Lock()
	m, ok := k.kept[b]
	fd := -1
	var err error
	if ok {
		fd, err = sys.Duplicate(m.file)
	}
	k.mu.Unlock()
	if !ok || err != nil {
		return l.say(record{op: opUnknown, block: b})
	}
	f := os.NewFile(uintptr(fd), "kept")
	defer f.Close()
	return l.say(record{op: opDone, block: b, note: m.note}, f)
}

// sweep closes the files of blocks that nobody holds any more, tells the clients that watch, and
// returns how many files are left.
func (k *keeper) sweep() (left int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for b, m := range k.kept {
		if !k.d.Stale(b) {
			continue
		}
		m.file.Close()
		delete(k.kept, b)
		for l := range k.lines {
			if l.watches && l.say(record{op: opDropped, block: b}) != nil {
				delete(k.lines, l)
				l.conn.Close()
			}
		}
	}
	return len(k.kept)
}
