package jsonl

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/shoal-mp/shoal/data/row"
	"github.com/shoal-mp/shoal/internal/safefile"
)

// A file is an open file with the positions of its lines. It is made by open, and several
// goroutines may use it afterwards.
type file struct {
	*os.File
	path   string
	begins []int64 // offsets of the lines that are not blank
	size   int64
}

func open(path string) (*file, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return nil, err
	}
	if f, err = openUnpacked(f); err != nil {
		return nil, fmt.Errorf("decompress %s: %w", path, err)
	}
	all := &file{File: f, path: path}
	if err := all.index(); err != nil {
		f.Close()
		return nil, err
	}
	return all, nil
}

// utf8Mark is the byte order mark of UTF-8.
const utf8Mark = "\xef\xbb\xbf"

func (f *file) lineCount() int { return len(f.begins) }

// index finds the lines that are not blank and sets f.begins and f.size. It needs no more memory
// for long lines than the buffer. The error wraps [ErrValue] if the file is UTF-16.
func (f *file) index() error {
	in := bufio.NewReaderSize(f, 1<<18)
	blank, begin := true, int64(0)
	switch start, _ := in.Peek(len(utf8Mark)); {
	case string(start) == utf8Mark: // written by Windows programs
		in.Discard(len(start))
		begin, f.size = int64(len(start)), int64(len(start))
	case len(start) >= 2 && (string(start[:2]) == "\xff\xfe" || string(start[:2]) == "\xfe\xff"):
		return fmt.Errorf("%s: %w: got UTF-16, want UTF-8: convert it with iconv -f UTF-16 -t UTF-8",
			f.path, ErrValue)
	}
	for {
		piece, err := in.ReadSlice('\n')
		f.size += int64(len(piece))
		blank = blank && len(bytes.TrimSpace(piece)) == 0
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil && err != io.EOF {
			return err
		}
		if !blank {
			f.begins = append(f.begins, begin)
		}
		if err == io.EOF {
			return nil
		}
		blank, begin = true, f.size
	}
}

// A lineBuffer holds a part of a file. It must not be used from several goroutines at once.
type lineBuffer struct {
	of   *file
	at   int64 // offset of data in the file
	data []byte
	next int64 // offset of the end of the latest line
}

// readAhead is the number of bytes that are read at once if lines are read one after another.
const readAhead = 64 << 10

// readLine returns the i-th line that is not blank, together with blank lines after it. It is
// valid until the next call with the same buffer. The error wraps [ErrLong] if the line exceeds
// limit bytes.
func (f *file) readLine(i, limit int, buffer *lineBuffer) ([]byte, error) {
	begin, end := f.begins[i], f.size
	if i+1 < len(f.begins) {
		end = f.begins[i+1]
	}
	n := end - begin
	if n > int64(limit) {
		return nil, fmt.Errorf("%w: got %d bytes, want at most %d", ErrLong, n, limit)
	}
	if buffer.of != f || begin < buffer.at || end > buffer.at+int64(len(buffer.data)) {
		size := n
		if buffer.of == f && begin == buffer.next {
			size = max(n, min(readAhead, f.size-begin))
		}
		buffer.of, buffer.at, buffer.data = f, begin, slices.Grow(buffer.data[:0], int(size))[:size]
		if read, err := f.ReadAt(buffer.data, begin); int64(read) < n {
			buffer.of = nil
			return nil, fmt.Errorf("file has changed: %w", err)
		} else {
			buffer.data = buffer.data[:read]
		}
	}
	buffer.next = end
	return buffer.data[begin-buffer.at:][:n], nil
}

// wrapError returns err in a [*row.Error] with the number in the file of the i-th line that is
// not blank. It counts the lines only now, because blank lines count too but are not indexed.
func (f *file) wrapError(i int, err error) error {
	number := 1
	in := bufio.NewReader(io.NewSectionReader(f, 0, f.begins[i]))
	for {
		piece, failed := in.ReadSlice('\n')
		if bytes.HasSuffix(piece, []byte("\n")) {
			number++
		}
		if failed != nil && failed != bufio.ErrBufferFull {
			return &row.Error{Path: f.path, Unit: "line", Number: number, Err: err}
		}
	}
}
