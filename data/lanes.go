package data

import "sync"

// lanes are the workers of a Stream, with whom its parts stay. Each gets as many as the others, of
// those parts that are read here: a rank, or a data host, does not read them all.
type lanes struct {
	mu sync.Mutex
	of map[int]int // by part
}

// lane returns which of n workers reads a part.
func (l *lanes) lane(part, n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.of[part]
	if !ok {
		if l.of == nil {
			l.of = make(map[int]int)
		}
		at = len(l.of) % n
		l.of[part] = at
	}
	return at
}
