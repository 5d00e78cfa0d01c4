package ipc

import (
	"slices"
	"sync"

	"github.com/shoal-mp/shoal/internal/arena"
)

// peers is the set of this process's holds for one synchronization object. The holder of a lock is
// the process, which may have several holds for it: from its creation, within a Cond, and from
// receiving it. An unlock by one of them must release a lock acquired by another.
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

// joinPeers adds h to the peers for its first block.
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

// anyHold calls f for each hold until f returns true, and reports whether it did.
func (p *peers) anyHold(f func(*hold) bool) bool {
	p.mu.Lock()
	holds := slices.Clone(p.holds)
	p.mu.Unlock()
	return slices.ContainsFunc(holds, f)
}
