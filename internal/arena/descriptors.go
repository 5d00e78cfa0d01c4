package arena

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/shoal-mp/shoal/internal/arena/keeper"
	"github.com/shoal-mp/shoal/internal/sys"
)

// descriptors is this process's access to the domain's keeper. See Note [Kept descriptors] of
// package keeper.
type descriptors struct {
	mu      sync.Mutex
	client  *keeper.Client // nil until first used
	watches []func(Handle)
}

// A Note is a value kept beside a descriptor. Its meaning is defined by the caller of
// [Domain.Keep].
type Note = keeper.Note

// Keep has the domain's keeper hold a duplicate of f, with a note, until no process and no message
// holds block h. The caller must hold the block. A block has at most one file. f remains the
// caller's, and may be closed when Keep returns.
//
// The error wraps [ErrKeeper] if the keeper's process has ended, if the block has a file already,
// or if the domain is local, and [ErrTooManyFiles] if the keeper has no room.
func (d *Domain) Keep(h Handle, note Note, f *os.File) error {
	c, err := d.keeperClient()
	if err != nil {
		return err
	}
	return c.Keep(h, note, f)
}

// Fetch returns the file that was kept for block h, and its note. The caller must hold the
// block, and must close the file: it is another descriptor of the same open file description.
// The error wraps [ErrKeeper] if there is no such file, if the keeper's process has ended, or if
// the domain is local.
func (d *Domain) Fetch(h Handle) (*os.File, Note, error) {
	c, err := d.keeperClient()
	if err != nil {
		return nil, Note{}, err
	}
	return c.Fetch(h)
}

// Sweep has the keeper close the files of blocks that have no holder left, and waits until it
// has. The keeper also does so by itself, within a second. The error wraps [ErrKeeper] if the
// keeper's process has ended.
func (d *Domain) Sweep() error {
	c, err := d.keeperClient()
	if err != nil {
		return err
	}
	return c.Sweep()
}

// WatchKept has f called, in another goroutine, with each block that had a file and has no
// holder left, until the domain is closed. For the blocks that a [Domain.Sweep] of this process
// finds, f returns before Sweep does, so f must not call methods that ask the keeper. The error
// wraps [ErrKeeper] if the keeper's process has ended, or if the domain is local.
func (d *Domain) WatchKept(f func(Handle)) error {
	d.files.mu.Lock()
	d.files.watches = append(d.files.watches, f)
	d.files.mu.Unlock()
	c, err := d.keeperClient()
	if err != nil {
		return err
	}
	return c.Watch()
}

// KeepFile keeps f for a new block without bytes, and returns the block. f remains the caller's.
// The caller holds one reference of the block, and must drop the reference by [Domain.LetGo].
// KeepFile returns the errors of [Domain.Alloc] and [Domain.Keep].
func (d *Domain) KeepFile(f *os.File) (Handle, error) {
	h, err := d.Alloc(0)
	if err != nil {
		return 0, err
	}
	if err := d.Keep(h, Note{}, f); err != nil {
		return 0, errors.Join(err, d.Release(h))
	}
	return h, nil
}

// LetGo drops one reference of the block of a file. If no other holder is left, the keeper
// closes the file at once.
func (d *Domain) LetGo(h Handle) error {
	err := d.Release(h)
	if err == nil && d.Stale(h) {
		err = d.Sweep()
	}
	return err
}

// TakeFile fetches the file of block h, drops one reference of the block, and returns the file
// under the given name. The caller must close it. TakeFile drops the reference even if it fails.
// It returns the errors of [Domain.Fetch].
func (d *Domain) TakeFile(h Handle, name string) (*os.File, error) {
	f, _, err := d.Fetch(h)
	if err != nil {
		return nil, errors.Join(err, d.LetGo(h))
	}
	defer f.Close()
	fd, err := sys.Duplicate(f)
	err = errors.Join(err, d.LetGo(h))
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// keeperClient returns the connection to the keeper, which the caller must not close. The first
// call makes it, and it is closed with the domain. The error wraps [ErrKeeper] if the domain is
// local or the keeper cannot be reached.
func (d *Domain) keeperClient() (*keeper.Client, error) {
	d.files.mu.Lock()
	defer d.files.mu.Unlock()
	if d.files.client != nil {
		return d.files.client, nil
	}
	if d.Files() == nil {
		return nil, fmt.Errorf("%w: a local domain has no keeper: %w", ErrKeeper, errors.ErrUnsupported)
	}
	c, err := keeper.Dial(d, d.notifyDropped)
	if err != nil {
		return nil, err
	}
	if err := d.AtClose(c); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	d.files.client = c
	return c, nil
}

// notifyDropped calls the functions registered by [Domain.WatchKept] with block h, which has no
// holder left.
func (d *Domain) notifyDropped(h Handle) {
	d.files.mu.Lock()
	watches := d.files.watches
	d.files.mu.Unlock()
	for _, f := range watches {
		f(h)
	}
}
