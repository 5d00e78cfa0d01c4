package data

import "sync"

// lanes assigns the parts of a Stream to workers. A part stays with its worker. Workers are
// assigned in round-robin order of first use, not by the number of the part, because a rank or a
// data host reads only some of the parts.
type lanes struct {
	mu sync.Mutex
	of map[int]int // worker by part
}

// workerFor returns the number of the worker, from 0 to n-1, that reads a part. n must be the
// same in all calls. It may be called from several goroutines.
func (l *lanes) workerFor(part, n int) int {
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
