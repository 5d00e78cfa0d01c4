package ipc

import (
	"slices"
	"sync"

	"github.com/shoal-mp/shoal/internal/arena"
)

// peers is the set of this process's holds for one synchronization object. The holder of a lock
// is the process, which may have several holds for it: from its creation, within a Cond, and
// from receiving it. There is one set per block in this process, guarded by its mu. An unlock by
// one of the holds must release a lock acquired by another.
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

// joinPeers adds h to the set of holds for its first block, and stores that set in h.peers. It
// must be called once, before h is used. The hold leaves the set when it releases its
// references.
func (h *hold) joinPeers() {
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

func (p *peers) removeHold(h *hold) {
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

// anyHold calls f for each hold until f returns true, and reports whether it did. p must not be
// nil.
func (p *peers) anyHold(f func(*hold) bool) bool {
	p.mu.Lock()
	holds := slices.Clone(p.holds)
	p.mu.Unlock()
	return slices.ContainsFunc(holds, f)
}
