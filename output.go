package shoal

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Output determines where the standard output and the standard error of workers go. See
// [Options].
type Output int

const (
	// Lines copies whole lines to this process's stdout and stderr.
	Lines Output = iota

	// PrefixRank is like Lines, with the prefix "[train 3] " on each line.
	PrefixRank

	// Files makes workers write directly to files in Options.Dir, such as train.3.out and
	// train.3.err.
	Files
)

// Note [Whole lines]: a line of a worker is never interrupted by another worker's line. It never
// interrupts a line of this process that was written by one call, for example of fmt.Println or
// json.Encoder. Each chunk of whole lines is one Write. On an *os.File, the file's own lock orders
// the Writes of one process. On other writers, the lock of the stream orders them. A line longer
// than maxLine is copied in pieces. An unterminated last line is terminated.
const maxLine = 1 << 20

// A stream is a writer of this process that receives the output of several workers. mu is held
// during each Write.
type stream struct {
	mu *sync.Mutex
	w  io.Writer
}

// newStreams returns the two streams of a group. If the writers are equal, the streams share a
// lock, so that they never write at once.
func newStreams(stdout, stderr io.Writer) (out, err *stream) {
	out = &stream{new(sync.Mutex), stdout}
	err = &stream{new(sync.Mutex), stderr}
	if sameWriter(stdout, stderr) {
		err.mu = out.mu
	}
	return out, err
}

// sameWriter reports whether two writers are equal. It returns false if their type is not
// comparable.
func sameWriter(a, b io.Writer) bool {
	defer func() { recover() }()
	return a == b
}

// write writes p by one Write. It ignores errors: a worker should not fail because its output
// cannot be written.
func (s *stream) write(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.w.Write(p)
}

// lines is an [io.Writer] that copies the output of one worker to a stream in whole lines, each
// with the prefix. One goroutine may use it.
type lines struct {
	to     *stream
	prefix string
	part   []byte
	tail   *tail // keeps the last lines; may be nil
}

func (l *lines) Write(p []byte) (int, error) {
	if l.tail != nil {
		l.tail.appendBytes(p)
	}
	l.part = append(l.part, p...)
	end := bytes.LastIndexByte(l.part, '\n') + 1
	if end == 0 && len(l.part) >= maxLine {
		end = len(l.part)
	}
	if end > 0 {
		l.flushBytes(end)
	}
	return len(p), nil
}

// flushBytes writes the first n bytes of l.part, which should be whole lines, and removes them.
func (l *lines) flushBytes(n int) {
	out := l.part[:n]
	if l.tail != nil {
		l.tail.noteFatal(out)
	}
	if l.prefix != "" {
		var b bytes.Buffer
		for line := range bytes.Lines(out) {
			b.WriteString(l.prefix)
			b.Write(line)
		}
		out = b.Bytes()
	}
	l.to.write(out)
	l.part = append(l.part[:0], l.part[n:]...)
}

// flushLast terminates and writes the last line, if it has no newline. It must be called at the
// end of the output.
func (l *lines) flushLast() {
	if len(l.part) > 0 {
		l.part = append(l.part, '\n')
		l.flushBytes(len(l.part))
	}
}

const (
	tailBytes = 8 << 10
	tailLines = 64
)

// tail keeps the end of a stream, and the runtime's message about the reason of a crash. The
// runtime writes that message before it switches to the crash output, and the goroutines that
// follow may be long.
type tail struct {
	b     []byte
	fatal string
}

// Prefixes of the messages of the runtime and of cgo before they exit.
const (
	fatalPrefix = "fatal error: "
	cgoPrefix   = "runtime/cgo: "
)

func (t *tail) noteFatal(whole []byte) {
	for line := range bytes.Lines(whole) {
		if bytes.HasPrefix(line, []byte(fatalPrefix)) || bytes.HasPrefix(line, []byte(cgoPrefix)) {
			t.fatal = string(bytes.TrimSpace(line))
		}
	}
}

func (t *tail) appendBytes(p []byte) {
	if t.b = append(t.b, p...); len(t.b) > 2*tailBytes {
		t.b = append(t.b[:0], t.b[len(t.b)-tailBytes:]...)
	}
}

// String returns the last lines of the stream: at most [tailLines] lines and [tailBytes] bytes.
func (t *tail) String() string { return lastLines(t.b) }

// lastLines returns the last tailLines lines, at most tailBytes bytes. It drops an incomplete first
// line unless it is the only line.
func lastLines(b []byte) string {
	b = bytes.TrimRight(b, "\n")
	if len(b) > tailBytes {
		b = b[len(b)-tailBytes:]
		if _, rest, ok := bytes.Cut(b, []byte("\n")); ok {
			b = rest
		}
	}
	from := len(b)
	for range tailLines {
		from = bytes.LastIndexByte(b[:from], '\n')
		if from < 0 {
			return string(b)
		}
	}
	return string(b[from+1:])
}

// tailOf returns the end of a stderr file, at most [maxCrash] bytes. It is empty if f cannot be
// read.
func tailOf(f *os.File) *tail {
	t := new(tail)
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return t
	}
	from := max(0, size-maxCrash)
	t.b, _ = io.ReadAll(io.NewSectionReader(f, from, size-from))
	t.noteFatal(t.b)
	return t
}

// openOutputs creates the files for the stdout and stderr of a worker in directory dir, which it
// creates if needed, named by the function's name and the rank. The caller must close them.
func openOutputs(dir, name string, rank int) (out, err *os.File, failed error) {
	if failed = os.MkdirAll(dir, 0o777); failed != nil {
		return nil, nil, failed
	}
	base := filepath.Join(dir, fmt.Sprintf("%s.%d", strings.ReplaceAll(name, string(filepath.Separator), "_"), rank))
	if out, failed = os.Create(base + ".out"); failed != nil {
		return nil, nil, failed
	}
	if err, failed = os.Create(base + ".err"); failed != nil {
		out.Close()
		return nil, nil, failed
	}
	return out, err, nil
}
