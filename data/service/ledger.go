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

// A ledger has the batches that trainers have acknowledged. In a file it outlives the data host:
// the first line is its head as JSON, and each other one an acknowledgement.
type ledger struct {
	id    string // trainers compare it: another ledger knows nothing of what they did
	file  *os.File
	again bool // it was there before
	size  int64
	read  []ack
	err   error // why nobody knows any more what the file has
}

// An ack is that a trainer has used a batch.
type ack struct {
	epoch, number int
	trainer       string
}

// A ledgerHead says of what it is.
type ledgerHead struct {
	Format int    `json:"shoal_ledger"`
	ID     string `json:"id"`
	maker.Identity
	Name string `json:"name"`
}

// lockedByte is behind all that a ledger may have.
const lockedByte = 1 << 60

// openLedger opens a ledger of what is served, or makes one. Without a path it is in memory.
func openLedger(path string, served hello) (_ *ledger, err error) {
	l := &ledger{id: rand.Text()}
	if path == "" {
		return l, nil
	}
	if l.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, errLedger(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(errLedger(err), l.file.Close())
		}
	}()
	switch ok, err := sys.LockByte(l.file, lockedByte); {
	case errors.Is(err, errors.ErrUnsupported): // two dealers with one ledger are the user's matter there
	case err != nil:
		return nil, err
	case !ok:
		return nil, fmt.Errorf("%s is in use by another data host: give each dealer a file of its own", path)
	}
	text, err := io.ReadAll(l.file)
	if err != nil {
		return nil, err
	}
	want := ledgerHead{1, l.id, served.Identity, served.Name}
	whole := bytes.LastIndexByte(text, '\n') + 1 // half a line was not acknowledged
	if whole == 0 {
		if len(text) > 0 && text[0] != '{' {
			return nil, fmt.Errorf("%s is no ledger: give a new file", path)
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
		return nil, fmt.Errorf("%s is no ledger of this version: give a new file", path)
	}
	if err := l.file.Truncate(int64(whole)); err != nil {
		return nil, err
	}
	l.again = true
	l.id, want.ID, l.size = head.ID, head.ID, int64(whole)
	if head != want {
		return nil, fmt.Errorf("%s is of another data set, seed or batch size: %+v, not %+v: give another file", path,
			head, want)
	}
	for i, line := range lines[1:] {
		var a ack
		if _, err := fmt.Sscanf(string(line), "%d %d %s", &a.epoch, &a.number, &a.trainer); err != nil ||
			a.epoch < 0 || a.number < 0 || a.number >= head.Batches {
			return nil, fmt.Errorf("%s is damaged in line %d: %q", path, i+2, line)
		}
		l.read = append(l.read, a)
	}
	return l, nil
}

// acks returns what was in the file when it was opened, once.
func (l *ledger) acks() []ack {
	all := l.read
	l.read = nil
	return all
}

// add enters an acknowledgement. After an error it is not there.
func (l *ledger) add(a ack) error {
	if l.file == nil {
		return nil
	}
	err := l.err
	if err == nil {
		err = l.write(fmt.Appendf(nil, "%d %d %s\n", a.epoch, a.number, a.trainer))
	}
	if err != nil {
		return errLedger(err)
	}
	return nil
}

// write writes behind what is whole, to the disk.
func (l *ledger) write(line []byte) error {
	n, err := l.file.WriteAt(line, l.size)
	if err != nil {
		if n > 0 {
			l.err = l.file.Truncate(l.size)
		}
		return err
	}
	l.size += int64(n)
	l.err = l.file.Sync() // after an error nobody knows what is on the disk
	return l.err
}

// close closes the file.
func (l *ledger) close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}
