package service

import (
	"container/list"
	"context"
	"sync"

	"github.com/shoal-mp/shoal/data/internal/maker"
)

// A cache keeps batches in shared memory for trainers that ask for the same ones: the ones used
// last, up to a number of bytes. Several that ask for one batch at the same time have it made once.
type cache struct {
	most int

	mu      sync.Mutex
	bytes   int
	entries map[batchKey]*entry
	used    *list.List // of *entry, the one used last in front
}

type batchKey struct{ epoch, number int }

// An entry is a batch that was made, or is being made.
type entry struct {
	key   batchKey
	ready chan struct{} // closed when batch and err are there
	batch maker.Batch
	err   error
	bytes int
	users int
	at    *list.Element // nil if it is no longer in the cache
}

func newCache(most int) *cache {
	return &cache{most: most, entries: make(map[batchKey]*entry), used: list.New()}
}

// get returns a batch, which fill has made if there is none. The caller releases it.
func (c *cache) get(ctx context.Context, key batchKey,
	fill func() (maker.Batch, error)) (e *entry, hit bool, err error) {
	c.mu.Lock()
	e, hit = c.entries[key]
	if !hit {
		e = &entry{key: key, ready: make(chan struct{})}
		e.at = c.used.PushFront(e)
		c.entries[key] = e
	} else {
		c.used.MoveToFront(e.at)
	}
	e.users++
	c.mu.Unlock()
	if !hit {
		e.batch, e.err = fill()
		for _, t := range e.batch.Tensors {
			e.bytes += t.Nbytes()
		}
		c.mu.Lock()
		c.bytes += e.bytes
		if e.err != nil {
			c.remove(e)
		}
		c.trim()
		c.mu.Unlock()
		close(e.ready)
	}
	select {
	case <-e.ready:
		err = e.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		c.release(e)
		return nil, false, err
	}
	return e, hit, nil
}

// release is the end of one use.
func (c *cache) release(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.users--; e.users == 0 && e.at == nil {
		e.batch.Close()
	}
	c.trim()
}

// trim gives up what was used longest ago, until the others fit. mu is held.
func (c *cache) trim() {
	for at := c.used.Back(); at != nil && c.bytes > c.most; {
		e := at.Value.(*entry)
		at = at.Prev()
		if e.users == 0 {
			c.remove(e)
		}
	}
}

// remove takes an entry out of the cache; its last user closes it. mu is held.
func (c *cache) remove(e *entry) {
	c.used.Remove(e.at)
	e.at = nil
	c.bytes -= e.bytes
	delete(c.entries, e.key)
	if e.users == 0 {
		e.batch.Close()
	}
}

// clear gives up all that nobody uses.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at := c.used.Back(); at != nil; {
		e := at.Value.(*entry)
		at = at.Prev()
		if e.users == 0 {
			c.remove(e)
		}
	}
}

// empty reports whether it keeps nothing.
func (c *cache) empty() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes == 0
}
