package shoal

import "sync"

// liveGroups are the groups with processes.
type liveGroups struct {
	mu  sync.Mutex
	set map[*Group]struct{}
}

var groups liveGroups

func (l *liveGroups) add(g *Group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.set == nil {
		l.set = make(map[*Group]struct{})
	}
	l.set[g] = struct{}{}
}

func (l *liveGroups) remove(g *Group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.set, g)
}

// list returns them.
func (l *liveGroups) list() []*Group {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []*Group
	for g := range l.set {
		all = append(all, g)
	}
	return all
}

// close ends every process that this one has started.
func (l *liveGroups) close() {
	all := l.list()
	for _, g := range all {
		g.cancel(&halt{ErrClosed}) // all of them at once
	}
	for _, g := range all {
		g.Close()
	}
}

// ActiveChildren returns the processes that this one has started and that have not ended,
// goroutines included.
func ActiveChildren() []*Process {
	var all []*Process
	for _, g := range groups.list() {
		all = append(all, g.running()...)
	}
	return all
}

// running returns the processes that have not ended.
func (g *Group) running() []*Process {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []*Process
	for p := range g.live {
		if p.Alive() {
			all = append(all, p)
		}
	}
	return all
}
