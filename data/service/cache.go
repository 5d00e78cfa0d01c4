package service

import (
	"container/list"
	"context"
	"sync"

	"github.com/shoal-mp/shoal/data/internal/maker"
)

// A cache is an LRU cache of batches in shared memory, limited in bytes, for trainers that request
// the same batches. Concurrent requests for a batch make it once.
type cache struct {
	most int

	mu      sync.Mutex
	bytes   int
	entries map[batchKey]*entry
	used    *list.List // of *entry, most recently used first
}

type batchKey struct{ epoch, number int }

// An entry is a batch in the cache, or one that is being made. It is guarded by cache.mu; batch
// and err do not change after ready is closed.
type entry struct {
	key   batchKey
	ready chan struct{} // closed when batch and err are set
	batch maker.Batch
	err   error
	bytes int
	users int
	at    *list.Element // nil after removal from the cache
}

func newCache(most int) *cache {
	return &cache{most: most, entries: make(map[batchKey]*entry), used: list.New()}
}

// get returns the entry for key. If there is none, it calls fill, without c.mu, to make the
// batch, which the cache then owns. hit reports whether the entry existed. If err is nil, the
// caller must call [cache.release] when it no longer uses the entry. err is the error of fill,
// which is not cached, or the cause of ctx.
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
		c.evictToLimit()
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

// release drops one reference of an entry, and closes the batch if it was the last one and the
// entry was removed.
func (c *cache) release(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.users--; e.users == 0 && e.at == nil {
		e.batch.Close()
	}
	c.evictToLimit()
}

// evictToLimit evicts least recently used entries without users until the cache is within its
// limit. The caller must hold c.mu.
func (c *cache) evictToLimit() {
	for at := c.used.Back(); at != nil && c.bytes > c.most; {
		e := at.Value.(*entry)
		at = at.Prev()
		if e.users == 0 {
			c.remove(e)
		}
	}
}

// remove removes an entry from the cache. It closes the batch, or if there are users, leaves
// this to the last release. The caller must hold c.mu.
func (c *cache) remove(e *entry) {
	c.used.Remove(e.at)
	e.at = nil
	c.bytes -= e.bytes
	delete(c.entries, e.key)
	if e.users == 0 {
		e.batch.Close()
	}
}

// clear evicts all entries without users.
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

// isEmpty reports whether the cache holds no bytes.
func (c *cache) isEmpty() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes == 0
}
