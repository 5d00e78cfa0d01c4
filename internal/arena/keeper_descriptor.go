package arena

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/shoal-mp/shoal/internal/sys"
)

// descriptors is what this process has of the domain's keeper. See Note [Who keeps a descriptor].
type descriptors struct {
	mu      sync.Mutex
	client  *keeperClient // nil before it is needed
	watches []func(Handle)
}

// Keep has the process that made the domain keep a duplicate of f, and note beside it, until nobody
// holds the block h any more, in a process or a message. The caller holds it, and one file is kept
// for a block. f stays the caller's. The error wraps ErrKeeper where that process has ended, and
// ErrTooManyFiles.
func (d *Domain) Keep(h Handle, note Note, f *os.File) error {
	_, err := d.askKeeper(record{op: opKeep, block: h, note: note}, f)
	return err
}

// Fetch returns a file that Keep was given for h, which the caller holds, and its note. The caller
// closes the file, which is another descriptor of the same open file.
func (d *Domain) Fetch(h Handle) (*os.File, Note, error) {
	a, err := d.askKeeper(record{op: opFetch, block: h})
	if err == nil && a.file == nil {
		err = fmt.Errorf("%w: no file came with %v", ErrKeeper, h)
	}
	return a.file, a.note, err
}

// Sweep has the keeper look for files whose block nobody holds any more. The keeper also looks
// without it, within a second.
func (d *Domain) Sweep() error {
	_, err := d.askKeeper(record{op: opSweep})
	return err
}

// WatchKept has f called, on a goroutine, with each block for which a file was kept and that nobody
// holds any more. What a Sweep has found is told before Sweep returns.
func (d *Domain) WatchKept(f func(Handle)) error {
	d.files.mu.Lock()
	d.files.watches = append(d.files.watches, f)
	d.files.mu.Unlock()
	_, err := d.askKeeper(record{op: opWatch})
	return err
}

// KeepFile is Keep for a block that stands for the file and nothing else. The caller holds it, and
// lets it go by LetGo.
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

// LetGo is Release for the block of a file, which is closed at once if nobody else holds the block.
func (d *Domain) LetGo(h Handle) error {
	err := d.Release(h)
	if err == nil && d.Stale(h) {
		err = d.Sweep()
	}
	return err
}

// TakeFile is Fetch, under a name, of a block of which the caller then holds one reference less.
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

// askKeeper asks over this process's connection, which is made when it is first needed.
func (d *Domain) askKeeper(r record, files ...*os.File) (keeperAnswer, error) {
	c, err := d.keeperClient()
	if err != nil {
		return keeperAnswer{}, err
	}
	return c.ask(r, files...)
}

func (d *Domain) keeperClient() (*keeperClient, error) {
	d.files.mu.Lock()
	defer d.files.mu.Unlock()
	if d.files.client != nil {
		return d.files.client, nil
	}
	if d.Files() == nil {
		return nil, fmt.Errorf("%w: a local domain has none: %w", ErrKeeper, errors.ErrUnsupported)
	}
	c, err := dialKeeper(d, d.keptDropped)
	if err != nil {
		return nil, err
	}
	if err := d.AtClose(c); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	d.files.client = c
	return c, nil
}

func (d *Domain) keptDropped(h Handle) {
	d.files.mu.Lock()
	watches := d.files.watches
	d.files.mu.Unlock()
	for _, f := range watches {
		f(h)
	}
}
