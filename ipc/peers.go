package ipc

import (
	"slices"
	"sync"

	"github.com/shoal-mp/shoal/internal/arena"
)

// peers are the holds of one synchronisation object in this process. A process holds a lock, and
// may have the lock several times: as it was made, within a Cond, and as it was received. Each is a
// hold of its own, and an unlock by one of them ends a lock by another one.
type peers struct {
	key peersKey

	mu    sync.Mutex
	holds []*hold
}

type peersKey struct {
	d *arena.Domain
	h arena.Handle
}

var allPeers = struct {
	mu  sync.Mutex
	set map[peersKey]*peers
}{set: make(map[peersKey]*peers)}

// join makes h a peer of the other holds of its first block.
func (h *hold) join() {
	key := peersKey{h.d, h.blocks[0]}
	allPeers.mu.Lock()
	defer allPeers.mu.Unlock()
	p := allPeers.set[key]
	if p == nil {
		p = &peers{key: key}
		allPeers.set[key] = p
	}
	p.mu.Lock()
	p.holds = append(p.holds, h)
	p.mu.Unlock()
	h.peers = p
}

func (p *peers) remove(h *hold) {
	if p == nil {
		return
	}
	allPeers.mu.Lock()
	defer allPeers.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds = slices.DeleteFunc(p.holds, func(o *hold) bool { return o == h })
	if len(p.holds) == 0 {
		delete(allPeers.set, p.key)
	}
}

// find calls f for one hold after the other until it returns true.
func (p *peers) find(f func(*hold) bool) bool {
	p.mu.Lock()
	holds := slices.Clone(p.holds)
	p.mu.Unlock()
	return slices.ContainsFunc(holds, f)
}
