package arena

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/shoal-mp/shoal/internal/arena/audit"
	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
	"github.com/shoal-mp/shoal/internal/sys"
)

// ErrNoDomain means that a process has no domain of this version open.
var ErrNoDomain = errors.New("shm: the process has no shared memory of Shoal")

// Check audits the domains that process pid has open, while their processes work, and returns
// one report for each; see package audit. It maps their memory for reading only. ctx bounds its
// time; it should have a deadline. The error wraps [os.ErrProcessDone] if there is no such
// process, [ErrUser] if the process belongs to another user, [ErrNoDomain] if it has no domain,
// and [ErrVersion] if its domain has another layout.
func Check(ctx context.Context, pid int) ([]audit.Report, error) {
	all, err := examine(pid)
	if err != nil {
		return nil, fmt.Errorf("check process %d: %w", pid, err)
	}
	var reports []audit.Report
	for _, s := range all {
		if err == nil {
			var r audit.Report
			r, err = audit.Check(ctx, s)
			reports = append(reports, r)
		}
	}
	for _, s := range all {
		err = errors.Join(err, s.close())
	}
	if err != nil {
		return nil, fmt.Errorf("check process %d: %w", pid, err)
	}
	return reports, nil
}

// examine maps the domains that process pid has open, for reading only. The caller must close
// each of them. examine leaves out a domain that it cannot map. If none is left, the error wraps
// [ErrNoDomain] and the reasons; otherwise it returns the errors of [Check].
func examine(pid int) (all []*examined, err error) {
	files, err := sys.MemoryFilesOf(pid, fileNames)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH):
		return nil, errors.Join(os.ErrProcessDone, err)
	case errors.Is(err, fs.ErrPermission):
		return nil, errors.Join(ErrUser, err)
	case err != nil:
		return nil, err
	}
	byName := make(map[string]*os.File)
	for _, f := range files {
		byName[f.Name()] = f
	}
	for _, f := range files {
		if f.Name() != controlName {
			continue
		}
		name, numbered := dataName(f)
		if data := byName[name]; numbered == nil && data != nil {
			s, fails := examineFiles(f, data)
			if fails == nil {
				all = append(all, s)
				delete(byName, name)
				continue
			}
			err = errors.Join(err, fails)
		}
	}
	for _, f := range files {
		if !inUse(all, f) {
			f.Close()
		}
	}
	if len(all) == 0 {
		return nil, errors.Join(ErrNoDomain, err)
	}
	return all, nil
}

// inUse reports whether f is the control file or the data file of a domain in all.
func inUse(all []*examined, f *os.File) bool {
	return slices.ContainsFunc(all, func(s *examined) bool { return s.ctlFile == f || s.dataFile == f })
}

// examineFiles maps the domain in a control file and a data file for reading only. If it
// succeeds, the result owns the files; otherwise they remain the caller's. It returns
// [ErrVersion] if the domain has another layout, and [ErrCorrupt] if a file is not sealed or the
// data file has the wrong size.
func examineFiles(ctl, data *os.File) (_ *examined, err error) {
	s := &examined{ctlFile: ctl, dataFile: data}
	info, err := data.Stat()
	if err != nil {
		return nil, err
	}
	if c, err := ctl.Stat(); err != nil || c.Size() != layout.ControlSize {
		return nil, errors.Join(controlSizeError(ctl), err)
	}
	if !sys.Sealed(ctl) || !sys.Sealed(data) || info.Size() == 0 {
		return nil, fmt.Errorf("%w: a file that can shrink", ErrCorrupt)
	}
	defer func() {
		if err != nil {
			s.unmap()
		}
	}()
	if s.ctl, err = sys.MapReadOnly(ctl, layout.ControlSize); err != nil {
		return nil, err
	}
	if s.mem, err = sys.MapReadOnly(data, int(info.Size())); err != nil {
		return nil, err
	}
	s.mapped = layout.OverlayMemory(s.ctl, s.mem)
	return s, checkLayout(&s.mapped)
}

// examined is a domain that this process has mapped for reading only, and has not joined. It
// implements [audit.Source].
type examined struct {
	ctlFile, dataFile *os.File
	ctl, mem          []byte
	mapped            layout.Memory
}

// Memory implements [audit.Source].
func (s *examined) Memory() *layout.Memory { return &s.mapped }

// IsAlive implements [audit.Source].
func (s *examined) IsAlive(seat int) (bool, error) { return sys.ByteLocked(s.ctlFile, int64(seat)) }

// Backed implements [audit.Source].
func (s *examined) Backed() (headers, seats uint64) {
	headers = uint64(sys.Backed(s.ctlFile, layout.OffBlocks)) / layout.BlockSize
	return headers, uint64(sys.Backed(s.ctlFile, layout.OffLanes)) / layout.LaneBytes
}

// BackedBytes implements [audit.Source].
func (s *examined) BackedBytes(off uint64) uint64 { return uint64(sys.Backed(s.dataFile, int64(off))) }

func (s *examined) unmap() {
	if s.ctl != nil {
		sys.Unmap(s.ctl)
	}
	if s.mem != nil {
		sys.Unmap(s.mem)
	}
}

func (s *examined) close() error {
	s.unmap()
	return errors.Join(s.ctlFile.Close(), s.dataFile.Close())
}

// A participantSource is a domain that this process has joined, as package audit reads it.
type participantSource struct{ d *Domain }

// Memory implements [audit.Source].
func (s participantSource) Memory() *layout.Memory { return &s.d.mem }

// IsAlive implements [audit.Source].
func (s participantSource) IsAlive(seat int) (bool, error) { return s.d.store.isAlive(seat) }

// Backed implements [audit.Source].
func (s participantSource) Backed() (headers, seats uint64) {
	return uint64(len(s.d.mem.Blocks)), word.MaxParticipants
}

// BackedBytes implements [audit.Source].
func (s participantSource) BackedBytes(off uint64) uint64 { return uint64(len(s.d.mem.Data)) - off }
