package shm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [Who keeps a descriptor] A message cannot hold a descriptor, so a file that is under way
// must be open in some process: the sender may have ended, the receiver not begun. That is the
// process that made the domain, without which the domain's processes are not there either. The
// memory of a device is such a file as well. A file is named by a block of the domain, which
// whoever uses the file or has it under way holds, in processes and messages. When that block is
// stale nobody can come any more, and the file is closed. The keeper looks when somebody asks it
// to, who has let go of the last that he had, when a process has ended and was reaped, and now and
// then, since a message may be dropped by somebody who knows nothing of files. So nothing is
// counted twice, and no death is missed.

const (
	// keeperAgain is when to try once more what another process is in the way of.
	keeperAgain = 10 * time.Millisecond
	// keeperOften and keeperSeldom are how soon the keeper looks whose block nobody holds after a
	// file came, and how long it waits at most.
	keeperOften, keeperSeldom = 10 * time.Millisecond, time.Second
	// maxKept is how many files a keeper has at most. Beyond that, receivers are gone or too slow.
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

// Close forgets all files and waits until nobody is served any more.
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

// serve answers one process, and outlives it to take back what it had.
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
		time.Sleep(keeperAgain) // another process is at it
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

// answer does what a record asks for. lost says that its file did not come.
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

// watch looks now and then whose block nobody holds any more, as long as there are files, and soon
// after one has come: most are fetched at once.
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

// give sends a file. It is a duplicate, so that it stays open meanwhile.
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

// sweep closes the files of blocks that nobody holds any more, says so to those that watch, and
// returns how many there are left.
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
