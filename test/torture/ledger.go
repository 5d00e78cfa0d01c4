//go:build linux

package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"sync"
)

// A ledger is a file with the actions of all processes of a storm, which append to it by a
// [pen]. Each entry must be written with one system call, so that a kill cannot split it. The
// file has the order of the writes. A ledger reads the file; several goroutines may use it.
type ledger struct {
	f       *os.File
	mu      sync.Mutex
	read    int64
	entries []entry
	known   map[int]bool // processes that have written
}

// An entry records an action of a process on an object. The kinds of actions are the letters
// from begins to kills.
type entry struct {
	What byte
	PID  int
	ID   uint64
}

// Kinds of entries.
const (
	begins = 'B' // before an action or a put
	ends   = 'E' // after it
	takes  = 'T' // before a get
	gets   = 'G' // got this object
	none   = 'N' // got nothing
	enters = 'I' // holds this object
	leaves = 'O' // before a release
	kills  = 'K' // the storm is about to kill the process with this ID
)

const entrySize = 16

func newLedger(path string) (*ledger, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_RDONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &ledger{f: f, known: make(map[int]bool)}, nil
}

// readEntries returns the entries so far. The caller must not change them.
func (l *ledger) readEntries() []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fetch()
	return l.entries
}

// knows reports whether the process pid has written an entry.
func (l *ledger) knows(pid int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fetch()
	return l.known[pid]
}

func (l *ledger) fetch() {
	more, _ := io.ReadAll(io.NewSectionReader(l.f, l.read, 1<<40))
	for ; len(more) >= entrySize; more = more[entrySize:] {
		e := entry{more[0], int(binary.LittleEndian.Uint32(more[4:])), binary.LittleEndian.Uint64(more[8:])}
		l.entries = append(l.entries, e)
		l.known[e.PID] = true
		l.read += entrySize
	}
}

// A pen appends to the ledger of a storm. [openPen] makes it; several goroutines may use it.
type pen struct{ f *os.File }

// pens holds the pens of this process by the paths of their ledgers.
var pens struct {
	sync.Mutex
	open map[string]pen
}

// openPen returns this process's pen for the ledger at path, and opens it on the first call.
func openPen(path string) (p pen, err error) {
	pens.Lock()
	defer pens.Unlock()
	if p, ok := pens.open[path]; ok {
		return p, nil
	}
	if p.f, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0); err != nil {
		return p, err
	}
	if pens.open == nil {
		pens.open = make(map[string]pen)
	}
	pens.open[path] = p
	return p, nil
}

// closePen closes this process's pen for the ledger at path. The pen must be open.
func closePen(path string) {
	pens.Lock()
	defer pens.Unlock()
	pens.open[path].f.Close()
	delete(pens.open, path)
}

// write appends an action of this process, as [pen.enter] does.
func (p pen) write(what byte, id uint64) { p.enter(what, os.Getpid(), id) }

// enter appends an action of process pid on object id. It panics if it cannot write. kind must
// be the kind of an [entry].
func (p pen) enter(kind byte, pid int, id uint64) {
	rec := [entrySize]byte{kind}
	binary.LittleEndian.PutUint32(rec[4:], uint32(pid))
	binary.LittleEndian.PutUint64(rec[8:], id)
	if _, err := p.f.Write(rec[:]); err != nil {
		panic(fmt.Sprintf("the ledger: %v", err))
	}
}

// An account counts the puts and gets of each object, by ID: the puts that had begun, the puts
// that had ended, and the gets.
type account struct{ begun, put, got map[uint64]int }

// accounts evaluates the entries of puts and gets. doubtful is the number of gets that were
// interrupted by a kill; each may have removed one object.
func accounts(all []entry) (a account, doubtful int) {
	a = account{make(map[uint64]int), make(map[uint64]int), make(map[uint64]int)}
	getting := make(map[int]bool)
	for _, e := range all {
		switch e.What {
		case begins:
			a.begun[e.ID]++
		case ends:
			a.put[e.ID]++
		case takes:
			getting[e.PID] = true
		case gets:
			a.got[e.ID]++
			delete(getting, e.PID)
		case none:
			delete(getting, e.PID)
		}
	}
	return a, len(getting)
}

// judge reports lost and duplicate objects to the storm. Up to doubtful lost objects are no
// violation.
func (a account) judge(s *storm, doubtful int) {
	lost := 0
	for id := range a.put {
		if a.got[id] == 0 {
			lost++
		}
	}
	if lost > doubtful {
		s.wrong(&s.seen.Lost, lost-doubtful, "%d are lost, and the dead were getting %d at most", lost, doubtful)
	}
	for id, n := range a.got {
		if n > 1 {
			s.wrong(&s.seen.Twice, n-1, "%#x came %d times", id, n)
		}
		if a.begun[id] == 0 {
			s.wrong(&s.seen.Twice, 1, "%#x came, and nobody put it", id)
		}
	}
}

// alone reports a violation to s unless at most most processes held the object id at any time. A
// process that is about to be killed does not count.
func alone(s *storm, all []entry, id uint64, most int) {
	inside, dying := make(map[int]bool), make(map[int]bool)
	for _, e := range all {
		switch {
		case e.What == kills:
			dying[int(e.ID)] = true
			delete(inside, int(e.ID))
		case e.ID != id || dying[e.PID]:
		case e.What == leaves:
			delete(inside, e.PID)
		case e.What == enters:
			if inside[e.PID] = true; len(inside) > most {
				s.wrong(&s.seen.Twice, 1, "%d processes hold what %d may: %v", len(inside), most, inside)
			}
		}
	}
}
