package cuda

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/shm"
)

// Note [Who keeps a segment]
// The memory of a device lives as long as a descriptor, an import or a mapping of it does, in whatever process, so a tensor under way must
// have somebody with a descriptor: the sender may have ended, the receiver not begun. That is the process that made the domain, without which the
// domain's processes are not there either. It needs no GPU, since it only holds files.
// A segment is named by a block of the domain, which every tensor in it holds, in processes and messages, and whoever allocates in it.
// When that block is stale nobody can come any more, and the file is closed. The keeper looks when somebody asks it to, who has let go of
// the last that he had, and when a process has ended and was reaped. So nothing is counted twice, and no death is missed.

// again is when to try once more what another process is in the way of.
const again = 10 * time.Millisecond

// keeper keeps the files of segments.
type keeper struct {
	d    *shm.Domain
	sock *sys.Listener
	done sync.WaitGroup
	end  context.CancelFunc
	ctx  context.Context

	mu    sync.Mutex
	kept  map[shm.Handle]kept
	lines map[*line]bool
}

type kept struct {
	file *os.File
	record
}

func init() {
	shm.AtNew(func(d *shm.Domain) (io.Closer, error) {
		k, err := newKeeper(d)
		if errors.Is(err, errors.ErrUnsupported) {
			return nothing{}, nil
		}
		return k, err
	})
}

type nothing struct{}

func (nothing) Close() error { return nil }

func newKeeper(d *shm.Domain) (*keeper, error) {
	sock, err := sys.Listen(keeperAddress(d))
	if err != nil {
		return nil, fmt.Errorf("keep the memory of devices: %w", err)
	}
	k := &keeper{d: d, sock: sock, kept: map[shm.Handle]kept{}, lines: map[*line]bool{}}
	k.ctx, k.end = context.WithCancel(context.Background())
	k.done.Go(func() { sys.Accept(sock.Accept, k.greet) })
	return k, nil
}

// Close forgets all segments and waits until nobody is served any more.
func (k *keeper) Close() error {
	k.end()
	err := k.sock.Close()
	k.mu.Lock()
	for l := range k.lines {
		err = errors.Join(err, l.conn.Close())
	}
	for s, m := range k.kept {
		err = errors.Join(err, m.file.Close())
		delete(k.kept, s)
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
		if err != nil || k.answer(l, r, f) != nil {
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
		time.Sleep(again) // another process is at it
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

func (k *keeper) answer(l *line, r record, f *os.File) error {
	switch r.op {
	case opKeep:
		if f == nil || !k.keep(r, f) {
			return l.say(record{op: opUnknown, segment: r.segment})
		}
		return l.say(record{op: opDone, segment: r.segment})
	case opFetch:
		if f != nil {
			f.Close()
		}
		return k.give(l, r.segment)
	case opSweep:
		if f != nil {
			f.Close()
		}
		k.sweep()
		return l.say(record{op: opDone})
	}
	if f != nil {
		f.Close()
	}
	return fmt.Errorf("operation %d", r.op)
}

// keep takes the file, unless there is one already.
func (k *keeper) keep(r record, f *os.File) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, known := k.kept[r.segment]
	if known || k.lines == nil || k.d.Stale(r.segment) {
		f.Close()
		return false
	}
	k.kept[r.segment] = kept{f, r}
	return true
}

// give sends a file. It is a duplicate, so that it stays open meanwhile.
func (k *keeper) give(l *line, s shm.Handle) error {
	k.mu.Lock()
	m, ok := k.kept[s]
	fd := -1
	var err error
	if ok {
		fd, err = sys.Duplicate(m.file)
	}
	k.mu.Unlock()
	if !ok || err != nil {
		return l.say(record{op: opUnknown, segment: s})
	}
	f := os.NewFile(uintptr(fd), "segment")
	defer f.Close()
	return l.say(record{op: opDone, segment: s, size: m.size, uuid: m.uuid}, f)
}

// sweep closes the files of segments that nobody uses any more, and says so to everybody.
func (k *keeper) sweep() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for s, m := range k.kept {
		if !k.d.Stale(s) {
			continue
		}
		m.file.Close()
		delete(k.kept, s)
		for l := range k.lines {
			if l.say(record{op: opDropped, segment: s}) != nil {
				delete(k.lines, l)
				l.conn.Close()
			}
		}
	}
}
