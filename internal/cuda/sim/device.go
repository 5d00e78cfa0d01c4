package sim

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/sys"
)

const (
	granularity = 2 << 20
	page        = 4 << 10
	eventSize   = 64
	eventArea   = 64 << 10 // area for interprocess events, after the memory
	// range for locks only, after the end of the file: the driver's own allocations
	ownArea = 1 << 40
)

// Devices holds the files of the simulated devices that this process has created.
type Devices struct{ files []*os.File }

// Create creates n devices with size bytes of memory each. size must be a multiple of 2 MiB. The
// devices exist until [Devices.Close] or the end of this process, and as long as another process
// uses them. The caller must close them.
func Create(n int, size int64) (*Devices, error) {
	d := new(Devices)
	for i := range n {
		f, err := sys.Memfd(fmt.Sprintf("cuda:%d", i))
		if err == nil {
			d.files = append(d.files, f)
			err = sys.Resize(f, size+eventArea)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("make a simulated device: %w", err), d.Close())
		}
	}
	return d, nil
}

// Close closes the files. The memory is freed when no other process uses it.
func (d *Devices) Close() (err error) {
	for _, f := range d.files {
		err = errors.Join(err, f.Close())
	}
	return err
}

// Paths returns paths that this process and others can open the devices with, while this process
// holds them open.
func (d *Devices) Paths() (paths []string) {
	for _, f := range d.files {
		fd := ^uintptr(0)
		if raw, err := f.SyscallConn(); err == nil {
			raw.Control(func(n uintptr) { fd = n })
		}
		paths = append(paths, fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd))
	}
	return paths
}

// Used returns the number of bytes of device i that programs have allocated, in all processes. It
// does not count the driver's own allocations.
func (d *Devices) Used(i int) (int64, error) {
	info, err := d.files[i].Stat()
	if err != nil {
		return 0, err
	}
	return usedBytes(d.files[i], 0, info.Size()-eventArea)
}

// A device is one process's view of a device. The driver's lock guards ctx and refs, the number
// of times that the primary context is retained.
type device struct {
	id   cudriver.Device
	path string
	file *os.File // must not hold locks
	size int64    // of the memory, without the other areas
	ctx  *context // the primary context, or nil if it is not retained
	refs int
}

func openDevice(id int, path string) (*device, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil || info.Size() <= eventArea {
		return nil, errors.Join(fmt.Errorf("%s is not a simulated device", path), err, f.Close())
	}
	return &device{id: cudriver.Device(id), path: path, file: f, size: info.Size() - eventArea}, nil
}

type span struct{ off, n int64 }

// lockedRanges returns the ranges within the n bytes at off that file descriptions other than
// f's have locked, sorted by offset.
func lockedRanges(f *os.File, off, n int64) (all []span, err error) {
	for left := []span{{off, n}}; len(left) > 0; {
		s := left[len(left)-1]
		left = left[:len(left)-1]
		if s.n <= 0 {
			continue
		}
		start, size, err := sys.LockedRange(f, s.off, s.n)
		if err != nil {
			return nil, err
		}
		if size > 0 {
			all = append(all, span{start, size})
			left = append(left, span{s.off, start - s.off}, span{start + size, s.off + s.n - start - size})
		}
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.off, b.off) })
	return all, nil
}

func usedBytes(f *os.File, off, n int64) (sum int64, err error) {
	all, err := lockedRanges(f, off, n)
	for _, s := range all {
		sum += s.n
	}
	return sum, err
}

// allocateBytes finds n free bytes within the size bytes at from, at a multiple of align. It
// returns a new open file description that holds a lock on them and is positioned at the first
// one, and their offset. The caller must close the file; the bytes are free when no descriptor
// or mapping of the description is left. The file is nil, without an error, if there is no free
// range.
func (d *device) allocateBytes(from, size, n, align int64) (*os.File, int64, error) {
	f, err := os.OpenFile(d.path, os.O_RDWR, 0)
	if err != nil {
		return nil, 0, err
	}
	for {
		all, err := lockedRanges(d.file, from, size)
		at := from
		for _, s := range all {
			if s.off-at >= n {
				break
			}
			at = max(at, (s.off+s.n+align-1)/align*align)
		}
		if err != nil || at+n > from+size {
			return nil, 0, errors.Join(err, f.Close())
		}
		ok, err := sys.LockRange(f, at, n)
		if err != nil {
			return nil, 0, errors.Join(err, f.Close())
		}
		if !ok { // another process has locked it first
			continue
		}
		if _, err := f.Seek(at, 0); err != nil {
			return nil, 0, errors.Join(err, f.Close())
		}
		return f, at, nil
	}
}

// isLocked reports whether a process holds a lock on exactly this range.
func (d *device) isLocked(s span) bool {
	start, n, err := sys.LockedRange(d.file, s.off, s.n)
	return err == nil && start == s.off && n == s.n
}

// mapShared maps memory of another process, and shares its lock, so that either process keeps
// the memory. The caller must unmap it.
func (d *device) mapShared(s span) ([]byte, error) {
	f, err := os.OpenFile(d.path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the mapping keeps the description open
	if ok, err := sys.ShareRange(f, s.off, s.n); err != nil || !ok {
		return nil, errors.Join(errors.New("it belongs to a single process"), err)
	}
	return sys.MapRange(f, s.off, int(s.n))
}
