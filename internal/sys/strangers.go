package sys

import (
	"io"
	"sync"
)

// Strangers are the connections of a listener that have not proven yet that they may be there. If
// one more than the limit enters, another one is closed: the oldest of the source that has the
// most, the new one counted. So silent connections do not keep others out, and a source pushes out
// no connection of a source that has fewer. All methods may be called at the same time.
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

// MostStrangers is the limit of a listener, unless few files may be open. All processes of a job
// may call it at once, and none of them is to be closed while it proves that it may be there.
const MostStrangers = 1024

// fewStrangers is the limit where few files may be open.
const fewStrangers = 32

// NewStrangers returns a set of at most limit connections, and of no more than a quarter of the
// files that this process may open, if that is more than a few.
func NewStrangers(limit int) *Strangers {
	if files := OpenFileLimit(); files >= 0 {
		limit = min(limit, max(fewStrangers, int(min(files, 4*MostStrangers))/4))
	}
	return &Strangers{limit: limit}
}

// Enter notes a connection from a source, which is comparable: a user, a network address. It closes
// the connection for which there is no room. After Close this is c. The caller closes c in any
// case.
func (s *Strangers) Enter(c io.Closer, source any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		c.Close()
		return
	}
	s.here = append(s.here, stranger{c, source})
	if len(s.here) > s.limit {
		i := s.worst()
		s.here[i].conn.Close()
		s.remove(i)
	}
}

// worst returns the place of the oldest connection of the source that has the most.
func (s *Strangers) worst() (place int) {
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

func (s *Strangers) remove(i int) {
	copy(s.here[i:], s.here[i+1:])
	s.here[len(s.here)-1] = stranger{}
	s.here = s.here[:len(s.here)-1]
}

// Leave ends the counting of c, which is no stranger any more or is closed.
func (s *Strangers) Leave(c io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, x := range s.here {
		if x.conn == c {
			s.remove(i)
			return
		}
	}
}

// Close closes all strangers, and each that enters from then on.
func (s *Strangers) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, x := range s.here {
		x.conn.Close()
	}
	s.here = nil
}
