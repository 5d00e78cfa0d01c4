package shoal

import "sync"

// A groupSet contains the groups with running processes.
type groupSet struct {
	mu  sync.Mutex
	set map[*Group]struct{}
}

var groups groupSet

func (l *groupSet) add(g *Group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.set == nil {
		l.set = make(map[*Group]struct{})
	}
	l.set[g] = struct{}{}
}

func (l *groupSet) remove(g *Group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.set, g)
}

// list returns the groups with running processes, in no order.
func (l *groupSet) list() []*Group {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []*Group
	for g := range l.set {
		all = append(all, g)
	}
	return all
}

// close cancels and closes all groups with running processes, and returns when these processes
// have ended.
func (l *groupSet) close() {
	all := l.list()
	for _, g := range all {
		g.cancel(&halt{ErrClosed}) // cancel all of them at once
	}
	for _, g := range all {
		g.Close()
	}
}

// ActiveChildren returns the running processes that this process has started, including
// goroutines. The order is unspecified.
func ActiveChildren() []*Process {
	var all []*Process
	for _, g := range groups.list() {
		all = append(all, g.runningProcesses()...)
	}
	return all
}

// runningProcesses returns the processes that have not ended.
func (g *Group) runningProcesses() []*Process {
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
