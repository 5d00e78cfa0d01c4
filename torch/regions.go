package torch

import (
	"errors"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/foreign"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/tensor"
)

// foreignTensors creates tensors over memory that PyTorch maps.
var foreignTensors = foreign.OfTensors[*tensor.Tensor, *tensor.Storage]()

// Note [Warm memory] Most of the cost of sending a tensor is the cost of fresh pages, so memory
// created by this process is reused after PyTorch has released it. The kernel reports the release
// without PyTorch's help: it counts the open descriptions of a file that can write
// (sys.OpenElsewhere), including mappings. A named file has its own reference count. A file in
// flight through /proc has no description yet, so its openings are watched. Until it has been
// opened, it must neither be reused nor closed while the receiver lives, because the message
// contains the number of its descriptor.

const (
	idleBytes = 256 << 20 // limit of the memory that waits for reuse
	idleFiles = 64        // limit of the descriptors that wait for reuse
)

// regions is the table of this process's regions.
var regions = &regionTable{byID: map[sys.FileID]*region{}, watched: map[int]*region{}}

var sweepOnce = sync.OnceFunc(sweepShared)

type regionTable struct {
	mu      sync.Mutex
	byID    map[sys.FileID]*region // all regions
	idle    []*region              // created here and without tenants, or still in flight; oldest first
	watch   *sys.OpenWatch         // nil before its first use, or if the system has none
	watched map[int]*region
	tidying bool // a check of PyTorch's regions in flight is scheduled
	kept    []*keptNames
}

// A tenant is the loan of a region to one storage, which calls End when it is released.
type tenant struct{ *region }

// End ends the loan: see [regionTable.removeTenant]. It must be called once, and the caller must
// not hold regions.mu.
func (t tenant) End() error { return regions.removeTenant(t.region) }

// allocateRegion returns a region without tenants for an uninitialized storage of n bytes, named
// or not, by reusing an idle one if it can. The caller must add a tenant. The error wraps
// shm.ErrNoSpace if the memory is exhausted.
func (t *regionTable) allocateRegion(n int, named bool) (*region, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.countOpenings()
	for i, r := range slices.Backward(t.idle) { // the most recently used first
		if r.ours && r.capacityBytes() == roundCapacity(n) && (r.name != "") == named && t.isUnused(r) {
			t.idle = slices.Delete(t.idle, i, i+1)
			r.nbytes = n
			if err := r.commitPages(); err != nil {
				return nil, errors.Join(err, t.removeRegion(r))
			}
			return r, nil
		}
	}
	r, err := newRegion(n, named)
	if errors.Is(err, arena.ErrNoSpace) { // idle regions may hold the space
		err = t.trimIdle(0)
		if err == nil {
			r, err = newRegion(n, named)
		}
	}
	if err != nil {
		return nil, err
	}
	t.byID[r.id] = r
	return r, nil
}

// addStorage creates a storage on r and makes it a tenant, which ends when the storage is
// released. The caller must hold t.mu, unless r is not in the table yet.
func (t *regionTable) addStorage(r *region) *tensor.Storage {
	s := foreignTensors.Adopt(r.data(), t.addTenant(r))
	r.storage = weak.Make(s)
	return s
}

func (t *regionTable) addTenant(r *region) tenant {
	r.tenants++
	return tenant{r}
}

// removeTenant ends one tenancy of r. After the last one, a region created by PyTorch is
// discarded unless it is in flight, and a region created by this process becomes idle.
func (t *regionTable) removeTenant(r *region) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.tenants--; r.tenants > 0 {
		return nil
	}
	t.countOpenings()
	if !r.ours && !t.isInFlight(r) {
		return t.removeRegion(r)
	}
	t.idle = append(t.idle, r)
	if !r.ours {
		t.recheckIdleAfter(tidyFirst)
	}
	return t.trimIdle(idleBytes)
}

// tidyFirst and tidyLast are the first and the longest pause between checks of closed PyTorch
// regions that are in flight back to PyTorch. Without these checks, such memory would be kept until
// the next tensor is sent or closed.
const (
	tidyFirst = 20 * time.Millisecond
	tidyLast  = time.Second
)

// recheckIdleAfter starts a timer that checks after a pause whether idle PyTorch regions are
// still in flight, discards the others, and repeats until none is. The caller must hold t.mu.
func (t *regionTable) recheckIdleAfter(pause time.Duration) {
	if t.tidying {
		return
	}
	t.tidying = true
	time.AfterFunc(pause, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.tidying = false
		t.countOpenings()
		_ = t.trimIdle(idleBytes) // there is no caller to return the error to
		if slices.ContainsFunc(t.idle, func(r *region) bool { return !r.ours }) {
			t.recheckIdleAfter(min(2*pause, tidyLast))
		}
	})
}

// Trim releases the memory that is kept for reuse by later tensors, except memory in flight. A
// program that sends by [FileSystem] should call Trim before it ends; otherwise its names stay in
// /dev/shm until PyTorch's manager ends or another program that uses this package removes them.
func Trim() error {
	regions.mu.Lock()
	defer regions.mu.Unlock()
	regions.countOpenings()
	return regions.trimIdle(0)
}

// trimIdle discards the oldest idle regions above the limits, bytes and idleFiles, except those
// in flight. PyTorch's regions in flight do not count against the limit of bytes; otherwise a
// region of this process would be freed and a fresh one allocated at the next send. The caller
// must hold t.mu.
func (t *regionTable) trimIdle(bytes int) (err error) {
	total := 0
	for _, r := range t.idle {
		if r.ours {
			total += len(r.mem)
		}
	}
	kept := t.idle[:0]
	for i, r := range t.idle {
		tooMuch := total > bytes || len(kept)+len(t.idle)-i > idleFiles || !r.ours
		if !tooMuch || t.isInFlight(r) {
			kept = append(kept, r)
			continue
		}
		if r.ours {
			total -= len(r.mem)
		}
		err = errors.Join(err, t.removeRegion(r))
	}
	clear(t.idle[len(kept):])
	t.idle = kept
	return err
}

func (t *regionTable) removeRegion(r *region) error {
	delete(t.byID, r.id)
	if r.watch != 0 {
		t.watch.Remove(r.watch)
		delete(t.watched, r.watch)
	}
	return r.discardRegion()
}

// isUnused reports whether no other process uses or may still open an idle region of this process.
// The caller must hold t.mu.
func (t *regionTable) isUnused(r *region) bool {
	if r.name != "" {
		return r.refCount().Load() == 1 && r.isNamed()
	}
	if t.isInFlight(r) {
		return false
	}
	elsewhere, err := sys.OpenElsewhere(r.file)
	return err == nil && !elsewhere
}

// isInFlight reports whether r is in flight: a live process may still open it by the number of its
// descriptor. The caller must hold t.mu.
func (t *regionTable) isInFlight(r *region) bool {
	if r.opens >= r.sends {
		r.sends, r.opens, r.peers = 0, 0, nil
	}
	r.peers = slices.DeleteFunc(r.peers, func(p process) bool { return !p.isAlive() })
	return len(r.peers) > 0
}

// openLater counts the recent openings, and reports whether r is in flight: see isInFlight. The
// caller must not hold t.mu.
func (t *regionTable) openLater(r *region) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.countOpenings()
	return t.isInFlight(r)
}

// updateOpenings is countOpenings for a caller that does not hold t.mu.
func (t *regionTable) updateOpenings() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.countOpenings()
}

// countOpenings adds the openings of watched regions since its last call to their opens. The
// caller must hold t.mu.
func (t *regionTable) countOpenings() {
	if t.watch != nil {
		t.watch.Opened(func(id int) {
			if r := t.watched[id]; r != nil {
				r.opens++
			}
		})
	}
}

// expectOpening records that r will be opened once: by the process by, or by this one if by is
// nil. If the message is not sent, the caller must call revertExpected.
func (t *regionTable) expectOpening(r *region, by *process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.countOpenings()
	if by != nil && r.watch == 0 {
		t.watchRegion(r)
	}
	t.isInFlight(r) // resets the counts if r is not in flight
	if r.watch != 0 || by != nil {
		r.sends++
	}
	if by != nil && !slices.Contains(r.peers, *by) {
		r.peers = append(r.peers, *by)
	}
}

// watchRegion adds r to the watch of openings. If that fails, r counts as in flight while its
// receiver lives. The caller must hold t.mu.
func (t *regionTable) watchRegion(r *region) {
	if t.watch == nil {
		w, err := sys.NewOpenWatch()
		if err != nil {
			return
		}
		t.watch = w
	}
	if id, err := t.watch.Add(r.file); err == nil {
		r.watch = id
		t.watched[id] = r
	}
}

// revertExpected reverts expectOpening for a message that was not sent.
func (t *regionTable) revertExpected(r *region) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.sends--
}

// occupyRegion creates a storage on a region returned by allocateRegion. The region is in use
// until the storage is released.
func (t *regionTable) occupyRegion(r *region) *tensor.Storage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.addStorage(r)
}

// moveStorage moves a storage from the Go heap to memory that PyTorch can map, named or not. The
// error wraps [tensor.ErrForeign] if the storage is not in the Go heap.
func (t *regionTable) moveStorage(s *tensor.Storage, named bool) error {
	r, err := t.allocateRegion(len(s.Bytes()), named)
	if err != nil {
		return err
	}
	t.mu.Lock()
	loan := t.addTenant(r)
	t.mu.Unlock()
	if err := foreignTensors.MoveTo(s, r.data(), loan); err != nil {
		return errors.Join(err, loan.End())
	}
	t.mu.Lock()
	r.storage = weak.Make(s)
	t.mu.Unlock()
	return nil
}

// containsAddr reports whether an address lies in a region. It also returns true if the table is
// locked.
func (t *regionTable) containsAddr(addr uintptr) bool {
	if !t.mu.TryLock() { // the faulting goroutine itself may hold the lock
		return true
	}
	defer t.mu.Unlock()
	for _, r := range t.byID {
		if sys.Contains(r.mem, addr) {
			return true
		}
	}
	return false
}
