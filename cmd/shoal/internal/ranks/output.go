package ranks

import (
	"bytes"
	"io"
	"sync"
)

// An output serializes the writes of the ranks of a job.
type output struct{ mu sync.Mutex }

// lines is an [io.Writer] that forwards complete lines with a prefix. It must not be used
// concurrently; several of them may share an output. The caller must call forwardRest after the
// last Write.
type lines struct {
	to     io.Writer
	prefix string
	all    *output
	rest   []byte // incomplete line
}

// longLine is the length in bytes at which an incomplete line is forwarded.
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
	err := l.forwardLines(l.rest[:whole])
	l.rest = append(l.rest[:0], l.rest[whole:]...)
	return len(b), err
}

func (l *lines) forwardLines(text []byte) error {
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

// forwardRest forwards the last line if it is incomplete. It must be called after the last Write.
func (l *lines) forwardRest() {
	if len(l.rest) > 0 {
		l.forwardLines(append(l.rest, '\n'))
	}
}
