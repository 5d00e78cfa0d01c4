package service

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/shoal-mp/shoal/data/internal/maker"
	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A ledger is the persistent log of acknowledged batches. The first line of its file is a
// [ledgerHead] as JSON; each other line is an acknowledgement. Without a file it records
// nothing. Its methods must not be called concurrently.
type ledger struct {
	id    string // random id; a trainer that finds another one must start the epoch again
	file  *os.File
	again bool // whether the file existed before
	size  int64
	read  []ack
	err   error // set if the contents of the file are unknown
}

// An ack records that a trainer has used a batch.
type ack struct {
	epoch, number int
	trainer       string
}

// A ledgerHead identifies the data that a ledger applies to.
type ledgerHead struct {
	Format int    `json:"shoal_ledger"`
	ID     string `json:"id"`
	maker.Identity
	Name string `json:"name"`
}

// lockedByte is the offset of the file lock, beyond any data.
const lockedByte = 1 << 60

// openLedger opens or creates the ledger at path, and locks it. If path is empty, the ledger has
// no file. The caller must close the ledger. The error wraps [ErrLedger] if the file is locked,
// damaged, or belongs to other data.
func openLedger(path string, served hello) (_ *ledger, err error) {
	l := &ledger{id: rand.Text()}
	if path == "" {
		return l, nil
	}
	if l.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, wrapLedger(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(wrapLedger(err), l.file.Close())
		}
	}()
	switch ok, err := sys.LockByte(l.file, lockedByte); {
	case errors.Is(err, errors.ErrUnsupported): // without locks, users must not share a ledger
	case err != nil:
		return nil, err
	case !ok:
		return nil, fmt.Errorf("ledger %s is in use by another data host: use a separate file for each dealer", path)
	}
	text, err := io.ReadAll(l.file)
	if err != nil {
		return nil, err
	}
	want := ledgerHead{1, l.id, served.Identity, served.Name}
	whole := bytes.LastIndexByte(text, '\n') + 1 // an incomplete last line was never confirmed
	if whole == 0 {
		if len(text) > 0 && text[0] != '{' {
			return nil, fmt.Errorf("%s is not a ledger: use a new file", path)
		}
		head, err := json.Marshal(want)
		if err != nil {
			return nil, err
		}
		if err := l.write(append(head, '\n')); err != nil {
			return nil, err
		}
		return l, safefile.SyncDir(filepath.Dir(path))
	}
	lines := bytes.Split(text[:whole-1], []byte("\n"))
	var head ledgerHead
	if err := json.Unmarshal(lines[0], &head); err != nil || head.Format != want.Format {
		return nil, fmt.Errorf("%s is not a ledger of this version: use a new file", path)
	}
	if err := l.file.Truncate(int64(whole)); err != nil {
		return nil, err
	}
	l.again = true
	l.id, want.ID, l.size = head.ID, head.ID, int64(whole)
	if head != want {
		return nil, fmt.Errorf("ledger %s belongs to another data set, seed or batch size: got %+v, want %+v: use "+
			"another file",
			path,
			head, want)
	}
	for i, line := range lines[1:] {
		var a ack
		if _, err := fmt.Sscanf(string(line), "%d %d %s", &a.epoch, &a.number, &a.trainer); err != nil ||
			a.epoch < 0 || a.number < 0 || a.number >= head.Batches {
			return nil, fmt.Errorf("ledger %s: invalid line %d: %q", path, i+2, line)
		}
		l.read = append(l.read, a)
	}
	return l, nil
}

// takeAcks returns the acknowledgements read from the file. Later calls return nil.
func (l *ledger) takeAcks() []ack {
	all := l.read
	l.read = nil
	return all
}

// add appends an acknowledgement and syncs the file. If it returns an error, which wraps
// [ErrLedger], the acknowledgement must not be confirmed.
func (l *ledger) add(a ack) error {
	if l.file == nil {
		return nil
	}
	err := l.err
	if err == nil {
		err = l.write(fmt.Appendf(nil, "%d %d %s\n", a.epoch, a.number, a.trainer))
	}
	if err != nil {
		return wrapLedger(err)
	}
	return nil
}

// write appends a line, which must end with a newline, at the end of the valid data and syncs the
// file. The caller must serialize calls.
func (l *ledger) write(line []byte) error {
	n, err := l.file.WriteAt(line, l.size)
	if err != nil {
		if n > 0 {
			l.err = l.file.Truncate(l.size)
		}
		return err
	}
	l.size += int64(n)
	l.err = l.file.Sync() // after a failed fsync the contents on disk are unknown
	return l.err
}

// close closes the file, which releases its lock.
func (l *ledger) close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}
