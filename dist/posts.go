package dist

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/ipc"
)

// posts holds the inboxes of all ranks. A process that receives a group opens them at its first
// send or receive, because each open queue costs a check at every wakeup of the process, even in
// calls that do not use letters.
type posts struct {
	mu      sync.Mutex
	payload payload         // undecoded inboxes, []*ipc.Queue[letter]
	dropped runtime.Cleanup // releases the payload if the group is collected without Close
	inboxes []*ipc.Queue[letter]
	closed  bool
}

func (p *posts) createInboxes(size int) error {
	for range size {
		q, err := ipc.NewQueue[letter](inboxRoom)
		if err != nil {
			return err
		}
		p.inboxes = append(p.inboxes, q)
	}
	return nil
}

// inbox returns the inbox of a rank, which p owns. It opens the inboxes if necessary. The error
// is [ErrClosed] after close, or wraps [codec.ErrFormat] if a received group has another number
// of inboxes than size.
func (p *posts) inbox(rank, size int) (*ipc.Queue[letter], error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	if p.inboxes == nil {
		all, err := decodePayload[[]*ipc.Queue[letter]](p.payload)
		if err != nil {
			return nil, err
		}
		if len(all) != size {
			for _, q := range all {
				err = errors.Join(err, q.Close())
			}
			return nil, errors.Join(fmt.Errorf("got %d inboxes, want %d, one per rank: %w", len(all), size,
				codec.ErrFormat), err)
		}
		p.inboxes = all
	}
	return p.inboxes[rank], nil
}

// marshal encodes the inboxes as a payload.
func (p *posts) marshal(e *codec.Encoder) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	if p.inboxes == nil {
		return p.payload.marshal(e)
	}
	packed, done, err := packValue(p.inboxes, false)
	if err != nil {
		return err
	}
	e.OnDone(codec.WatcherFunc(done))
	return packed.marshal(e)
}

func (p *posts) close() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	p.dropped.Stop()
	for _, q := range p.inboxes {
		err = errors.Join(err, q.Close())
	}
	return errors.Join(err, p.payload.releaseBlocks())
}
