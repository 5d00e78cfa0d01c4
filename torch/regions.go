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

// foreignTensors makes tensors over memory that PyTorch maps.
var foreignTensors = foreign.OfTensors[*tensor.Tensor, *tensor.Storage]()

// Note [Warm memory] Most of the cost of sending a tensor is the cost of fresh pages. So memory of
// ours is used again when PyTorch has let go of it. The kernel says exactly when, without PyTorch's
// help: it counts the descriptions of a file that can write (sys.OpenElsewhere), mappings included.
// A named file has its own count. A file under way through /proc has no description yet. For such a
// file the openings are watched. Until it is opened, it is neither used again nor closed while the
// receiver lives, because the message has the number of its descriptor.

const (
	idleBytes = 256 << 20 // at most so many bytes wait to be used again
	idleFiles = 64        // and at most so many descriptors
)

// regions are the regions of this process.
var regions = &regionTable{byID: map[sys.FileID]*region{}, watched: map[int]*region{}}

var sweepOnce = sync.OnceFunc(sweep)

type regionTable struct {
	mu      sync.Mutex
	byID    map[sys.FileID]*region // all regions
	idle    []*region              // ours without tenants, and any that are still under way; oldest first
	watch   *sys.OpenWatch         // nil before the first use, or if the system has none
	watched map[int]*region
	tidying bool // a look at PyTorch's memory under way is planned
	kept    []*keptNames
}

// A tenant is the Loan of a storage on a region.
type tenant struct{ *region }

// End leaves the region.
func (t tenant) End() error { return regions.leave(t.region) }

// allocate returns a storage of n bytes, with any values, in memory that PyTorch can map.
func (t *regionTable) allocate(n int, named bool) (*region, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.look()
	for i, r := range slices.Backward(t.idle) { // the warmest first
		if r.ours && r.room() == capacity(n) && (r.name != "") == named && t.quiet(r) {
			t.idle = slices.Delete(t.idle, i, i+1)
			r.nbytes = n
			if err := r.commit(); err != nil {
				return nil, errors.Join(err, t.forget(r))
			}
			return r, nil
		}
	}
	r, err := newRegion(n, named)
	if errors.Is(err, arena.ErrNoSpace) { // the idle regions may have the room
		err = t.trim(0)
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

// settle makes a storage on r its tenant. The caller has locked the table, or r is not yet in it.
func (t *regionTable) settle(r *region) *tensor.Storage {
	s := foreignTensors.Adopt(r.data(), t.enter(r))
	r.storage = weak.Make(s)
	return s
}

func (t *regionTable) enter(r *region) tenant {
	r.tenants++
	return tenant{r}
}

// leave ends a tenancy. A region of PyTorch's goes with its last tenant, unless it is under way. A
// region of ours waits to be used again.
func (t *regionTable) leave(r *region) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.tenants--; r.tenants > 0 {
		return nil
	}
	t.look()
	if !r.ours && !t.underWay(r) {
		return t.forget(r)
	}
	t.idle = append(t.idle, r)
	if !r.ours {
		t.tidyIn(tidyFirst)
	}
	return t.trim(idleBytes)
}

// A tensor of PyTorch's may be closed here while it is under way back. This process then looks
// whether the tensor has arrived: first after tidyFirst, and then after pauses of at most tidyLast.
// Without these looks PyTorch's memory would be kept until the next send or close of a tensor.
const (
	tidyFirst = 20 * time.Millisecond
	tidyLast  = time.Second
)

// tidyIn looks after a pause whether idle regions of PyTorch's are still under way, and repeats
// that until none is.
func (t *regionTable) tidyIn(pause time.Duration) {
	if t.tidying {
		return
	}
	t.tidying = true
	time.AfterFunc(pause, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.tidying = false
		t.look()
		_ = t.trim(idleBytes) // no caller gets the error
		if slices.ContainsFunc(t.idle, func(r *region) bool { return !r.ours }) {
			t.tidyIn(min(2*pause, tidyLast))
		}
	})
}

// Trim gives back the memory that waits to be sent to PyTorch again, except memory under way. A
// program that sends by FileSystem calls Trim before it ends. Otherwise its names stay in /dev/shm
// until PyTorch's manager ends or another such program removes them.
func Trim() error {
	regions.mu.Lock()
	defer regions.mu.Unlock()
	regions.look()
	return regions.trim(0)
}

// trim lets the oldest idle regions go while there are too many, except those under way. PyTorch's
// regions under way do not count against the room of ours. If they did, a region of ours would be
// freed here and a fresh one made at the next send.
func (t *regionTable) trim(bytes int) (err error) {
	total := 0
	for _, r := range t.idle {
		if r.ours {
			total += len(r.mem)
		}
	}
	kept := t.idle[:0]
	for i, r := range t.idle {
		tooMuch := total > bytes || len(kept)+len(t.idle)-i > idleFiles || !r.ours
		if !tooMuch || t.underWay(r) {
			kept = append(kept, r)
			continue
		}
		if r.ours {
			total -= len(r.mem)
		}
		err = errors.Join(err, t.forget(r))
	}
	clear(t.idle[len(kept):])
	t.idle = kept
	return err
}

func (t *regionTable) forget(r *region) error {
	delete(t.byID, r.id)
	if r.watch != 0 {
		t.watch.Remove(r.watch)
		delete(t.watched, r.watch)
	}
	return r.discard()
}

// quiet reports whether no process has, or will have, an idle region of ours.
func (t *regionTable) quiet(r *region) bool {
	if r.name != "" {
		return r.count().Load() == 1 && r.named()
	}
	if t.underWay(r) {
		return false
	}
	elsewhere, err := sys.OpenElsewhere(r.file)
	return err == nil && !elsewhere
}

// underWay reports whether a process may still open r by the number of its descriptor.
func (t *regionTable) underWay(r *region) bool {
	if r.opens >= r.sends {
		r.sends, r.opens, r.peers = 0, 0, nil
	}
	r.peers = slices.DeleteFunc(r.peers, func(p process) bool { return !p.alive() })
	return len(r.peers) > 0
}

// openLater looks at the openings, and then returns underWay. It takes the lock.
func (t *regionTable) openLater(r *region) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.look()
	return t.underWay(r)
}

// notice looks at the openings. It takes the lock.
func (t *regionTable) notice() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.look()
}

// look counts the openings since the last look.
func (t *regionTable) look() {
	if t.watch != nil {
		t.watch.Opened(func(id int) {
			if r := t.watched[id]; r != nil {
				r.opens++
			}
		})
	}
}

// expect notes that r will be opened once: by a peer, or by this process if by is nil.
func (t *regionTable) expect(r *region, by *process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.look()
	if by != nil && r.watch == 0 {
		t.observe(r)
	}
	t.underWay(r) // begins to count anew if r is not under way
	if r.watch != 0 || by != nil {
		r.sends++
	}
	if by != nil && !slices.Contains(r.peers, *by) {
		r.peers = append(r.peers, *by)
	}
}

// observe puts r into the watch. Without a watch r stays under way while its receiver lives.
func (t *regionTable) observe(r *region) {
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

// recall undoes expect.
func (t *regionTable) recall(r *region) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.sends--
}

// occupy makes a storage on a region that was just allocated.
func (t *regionTable) occupy(r *region) *tensor.Storage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.settle(r)
}

// move moves the storage of t, which is on the heap, to memory that PyTorch can map.
func (t *regionTable) move(s *tensor.Storage, named bool) error {
	r, err := t.allocate(len(s.Bytes()), named)
	if err != nil {
		return err
	}
	t.mu.Lock()
	loan := t.enter(r)
	t.mu.Unlock()
	if err := foreignTensors.MoveTo(s, r.data(), loan); err != nil {
		return errors.Join(err, loan.End())
	}
	t.mu.Lock()
	r.storage = weak.Make(s)
	t.mu.Unlock()
	return nil
}

// holds reports whether an address is in a region.
func (t *regionTable) holds(addr uintptr) bool {
	if !t.mu.TryLock() { // the goroutine that has the lock may be the one that has met the fault
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
