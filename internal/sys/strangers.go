package sys

import (
	"io"
	"sync"
)

// Strangers is the set of a listener's connections that have not been authenticated yet. If one
// more than the limit enters, one connection is closed: the oldest of the source with the most
// connections, including the new one. So silent connections do not block others, and a source
// displaces no connection of a source with fewer. All methods may be called concurrently.
type Strangers struct {
	limit int

	mu     sync.Mutex
	here   []stranger // oldest first
	closed bool
}

type stranger struct {
	conn   io.Closer
	source any
}

// MostStrangers is the usual limit of a listener, unless the process may open only few files. All
// processes of a job may connect at once, and none of them must be closed while it authenticates.
const MostStrangers = 1024

// fewStrangers is the limit if the process may open only few files.
const fewStrangers = 32

// NewStrangers returns a set of at most limit connections. It reduces limit to a quarter of the
// files that this process may open, but not below 32. The caller must close the set.
func NewStrangers(limit int) *Strangers {
	if files := OpenFileLimit(); files >= 0 {
		limit = min(limit, max(fewStrangers, int(min(files, 4*MostStrangers))/4))
	}
	return &Strangers{limit: limit}
}

// Enter adds a connection from a source, such as a user or a network address. source must be
// comparable. If there is no room, Enter closes one connection of the set, possibly c. After
// [Strangers.Close] it closes c. The caller must close c in any case.
func (s *Strangers) Enter(c io.Closer, source any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		c.Close()
		return
	}
	s.here = append(s.here, stranger{c, source})
	if len(s.here) > s.limit {
		i := s.worstIndex()
		s.here[i].conn.Close()
		s.removeAt(i)
	}
}

// worstIndex returns the index of the oldest connection of the source with the most connections.
func (s *Strangers) worstIndex() (place int) {
	count := make(map[any]int)
	for _, x := range s.here {
		count[x.source]++
	}
	for i, x := range s.here {
		if count[x.source] > count[s.here[place].source] {
			place = i
		}
	}
	return place
}

func (s *Strangers) removeAt(i int) {
	copy(s.here[i:], s.here[i+1:])
	s.here[len(s.here)-1] = stranger{}
	s.here = s.here[:len(s.here)-1]
}

// Leave removes c without closing it. The caller must call it when c is authenticated or
// closed. It does nothing if c is not in the set.
func (s *Strangers) Leave(c io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, x := range s.here {
		if x.conn == c {
			s.removeAt(i)
			return
		}
	}
}

// Close closes all connections in the set, and each one that enters later.
func (s *Strangers) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, x := range s.here {
		x.conn.Close()
	}
	s.here = nil
}
