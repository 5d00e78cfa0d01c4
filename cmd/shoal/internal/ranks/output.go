package ranks

import (
	"bytes"
	"io"
	"sync"
)

// An output is where the ranks of a job write to, one at a time.
type output struct{ mu sync.Mutex }

// lines passes on whole lines, each with a prefix.
type lines struct {
	to     io.Writer
	prefix string
	all    *output
	rest   []byte // a line that has begun
}

// longLine is passed on before its end.
const longLine = 64 << 10

func (l *lines) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	whole := bytes.LastIndexByte(l.rest, '\n') + 1
	if whole == 0 && len(l.rest) < longLine {
		return len(b), nil
	}
	if whole == 0 {
		l.rest, whole = append(l.rest, '\n'), len(l.rest)+1
	}
	err := l.pass(l.rest[:whole])
	l.rest = append(l.rest[:0], l.rest[whole:]...)
	return len(b), err
}

func (l *lines) pass(text []byte) error {
	var b bytes.Buffer
	for line := range bytes.Lines(text) {
		b.WriteString(l.prefix)
		b.Write(line)
	}
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	_, err := l.to.Write(b.Bytes())
	return err
}

// finish passes on a last line that has no end.
func (l *lines) finish() {
	if len(l.rest) > 0 {
		l.pass(append(l.rest, '\n'))
	}
}
