package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/shoal-mp/shoal/internal/safefile"
)

// Note [Valid at any moment]: the file is an array padded with blanks: "[", events, blanks, "]". A
// write overwrites blanks and must not cross a page boundary, so the kernel performs it completely
// or not at all, even if the process is killed. If an event does not fit into the rest of a page,
// the blanks there remain. When the blanks are used up, the file is replaced by one of twice the
// size. Close replaces it by one without trailing blanks.

const (
	page  = 4096
	first = 64 << 10 // size of a new file, in bytes
)

const (
	opening = "[\n"
	closing = "\n]\n"
)

// A file is a trace file in Chrome's JSON format that is being written. One goroutine may use it
// at a time.
type file struct {
	path   string
	f      *os.File
	at     int64  // offset of the next write
	size   int64  // size of the file, including the closing bracket
	page   []byte // events to be written at once
	events int
	zero   int64 // origin of the time stamps in the file
	named  map[int]string
}

func createFile(path string, zero int64) (*file, error) {
	f := &file{path: path, zero: zero, named: make(map[int]string)}
	return f, f.rewriteFile(first, true)
}

// rewriteFile replaces the file at f.path by a copy with all events written so far, and
// continues with the copy; the first call creates the file. Buffered events are not written. If
// blanks is true, the copy is padded to size bytes; otherwise size must be 0.
func (f *file) rewriteFile(size int64, blanks bool) error {
	w, err := safefile.NewReplacement(f.path)
	if err != nil {
		return err
	}
	defer w.Discard() // no-op after Commit
	if f.f == nil {
		f.at = int64(len(opening))
		_, err = io.WriteString(w, opening)
	} else {
		_, err = io.Copy(w, io.NewSectionReader(f.f, 0, f.at))
	}
	for left := size - f.at - int64(len(closing)); err == nil && blanks && left > 0; left -= page {
		_, err = w.Write(bytes.Repeat([]byte{' '}, int(min(left, page))))
	}
	if err == nil {
		_, err = io.WriteString(w, closing)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", f.path, err)
	}
	if err := w.Commit(); err != nil {
		return err
	}
	if err := f.closeFile(); err != nil {
		return err
	}
	f.size = size
	f.f, err = os.OpenFile(f.path, os.O_RDWR, 0)
	return err
}

func (f *file) closeFile() error {
	if f.f == nil {
		return nil
	}
	return f.f.Close()
}

// finishFile replaces the file by one without trailing blanks and closes it. f must not be used
// afterwards. Buffered events must have been written.
func (f *file) finishFile() error {
	return errors.Join(f.rewriteFile(0, false), f.closeFile())
}

// An event is an event of Chrome's trace format.
type event struct {
	Name     string         `json:"name"`
	Phase    string         `json:"ph"`
	Time     json.Number    `json:"ts,omitempty"`  // microseconds
	Duration json.Number    `json:"dur,omitempty"` // microseconds
	PID      int            `json:"pid"`
	Track    int32          `json:"tid"`
	Args     map[string]any `json:"args,omitempty"`
}

// writeLetter writes the events of a letter to the file: the names of the process and of new
// tracks, the spans, and the number of lost spans.
func (f *file) writeLetter(l letter) error {
	var all []event
	if f.named[l.PID] != l.Process {
		f.named[l.PID] = l.Process
		all = append(all,
			event{Name: "process_name", Phase: "M", PID: l.PID, Args: map[string]any{"name": shortenName(l.Process)}})
	}
	for _, k := range l.Tracks {
		all = append(all,
			event{Name: "thread_name", Phase: "M", PID: l.PID, Track: k.ID, Args: map[string]any{"name": k.Name}})
	}
	for _, s := range l.Spans {
		all = append(all, event{Name: s.Name, Phase: "X", PID: l.PID, Track: s.Track,
			Time: formatMicros(s.Begin - f.zero), Duration: formatMicros(s.End - s.Begin)})
	}
	if l.Lost > 0 {
		last := f.zero
		if n := len(l.Spans); n > 0 {
			last = l.Spans[n-1].End
		}
		all = append(all, event{Name: "spans lost", Phase: "I", Time: formatMicros(last - f.zero), PID: l.PID,
			Args: map[string]any{"spans": l.Lost}})
	}
	for _, e := range all {
		if err := f.addEvent(e); err != nil {
			return err
		}
	}
	return f.flushPage()
}

// formatMicros returns ns, a number of nanoseconds, as a decimal number of microseconds with
// three digits after the point.
func formatMicros(ns int64) json.Number {
	sign := ""
	if ns < 0 {
		sign, ns = "-", -ns
	}
	return json.Number(fmt.Sprintf("%s%d.%03d", sign, ns/1000, ns%1000))
}

// addEvent buffers an event until flushPage. If the event does not fit into the current page,
// addEvent first writes the buffered events, and enlarges the file if necessary.
func (f *file) addEvent(e event) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if f.events > 0 {
		b = append([]byte{','}, b...)
	}
	b = append(b, '\n')
	if used := (f.at + int64(len(f.page))) % page; used == 0 || used+int64(len(b)) > page {
		if err := f.flushPage(); err != nil {
			return err
		}
		f.at = (f.at + page - 1) / page * page
		if f.at+page+int64(len(closing)) > f.size {
			if err := f.rewriteFile(2*f.size, true); err != nil {
				return err
			}
		}
	}
	f.page = append(f.page, b...)
	f.events++
	return nil
}

// flushPage writes the buffered events to the file by one write. It does nothing if there are
// none.
func (f *file) flushPage() error {
	if len(f.page) == 0 {
		return nil
	}
	if _, err := f.f.WriteAt(f.page, f.at); err != nil {
		return fmt.Errorf("write %s: %w", f.path, err)
	}
	f.at += int64(len(f.page))
	f.page = f.page[:0]
	return nil
}
