package torch

import (
	"errors"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/shoal-mp/shoal/internal/foreign"
	"github.com/shoal-mp/shoal/internal/shm"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/tensor"
)

// foreignTensors makes tensors over memory that PyTorch maps.
var foreignTensors = foreign.OfTensors[*tensor.Tensor, *tensor.Storage]()

// Note [Warm memory] A fresh page costs more than what a tensor's way to PyTorch costs otherwise,
// so memory of ours is used again once PyTorch has let go of it. That is known exactly, without
// PyTorch's help: the kernel counts the descriptions of a file that can write (sys.OpenElsewhere),
// mappings included, and a named file has its own count. What is under way by name, through /proc,
// has no description yet; for that the openings are watched, and memory whose opening is still to
// come is neither used again nor closed while the receiver lives, since the number of its
// descriptor is in the message.

const (
	idleBytes = 256 << 20 // that wait to be used again
	idleFiles = 64        // and as many descriptors
)

// regions are those of this process.
var regions = &regionTable{byID: map[sys.FileID]*region{}, watched: map[int]*region{}}

var sweepOnce = sync.OnceFunc(sweep)

type regionTable struct {
	mu      sync.Mutex
	byID    map[sys.FileID]*region // all
	idle    []*region              // of ours without tenants, and any that are still under way; oldest first
	watch   *sys.OpenWatch         // nil before the first use, or where it is not to be had
	watched map[int]*region
	tidying bool // PyTorch's memory under way will be looked at again
	kept    []*keptNames
}

// A tenant is the Loan of a storage on a region.
type tenant struct{ *region }

// End leaves the region.
func (t tenant) End() error { return regions.leave(t.region) }

// allocate returns a storage of n bytes, which hold anything, in memory that PyTorch can map.
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
	if errors.Is(err, shm.ErrNoSpace) { // what waits may be what is missing
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

// settle makes a storage on r its tenant. The table is locked, or r not yet in it.
func (t *regionTable) settle(r *region) *tensor.Storage {
	s := foreignTensors.Adopt(r.data(), t.enter(r))
	r.storage = weak.Make(s)
	return s
}

func (t *regionTable) enter(r *region) tenant {
	r.tenants++
	return tenant{r}
}

// leave ends a tenancy. What is PyTorch's goes with the last one, unless it is under way; what is
// ours waits to be used again.
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

// How long after a tensor of PyTorch's was closed here, while it was under way back, it is first
// looked at whether it has arrived, and how long at most from one look to the next: PyTorch's
// memory is not to be kept until somebody happens to send or close another tensor.
const (
	tidyFirst = 20 * time.Millisecond
	tidyLast  = time.Second
)

// tidyIn looks after a pause whether what is PyTorch's and idle is still under way, and again until
// nothing is.
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
		_ = t.trim(idleBytes) // nobody is there to be told
		if slices.ContainsFunc(t.idle, func(r *region) bool { return !r.ours }) {
			t.tidyIn(min(2*pause, tidyLast))
		}
	})
}

// Trim gives back the memory that waits to be sent to PyTorch again, except what is under way. A
// program that sends by FileSystem calls Trim before it ends. Otherwise its names stay in /dev/shm
// until another such program removes them.
func Trim() error {
	regions.mu.Lock()
	defer regions.mu.Unlock()
	regions.look()
	return regions.trim(0)
}

// trim lets the oldest idle regions go, while there are too many, but for those under way. What of
// PyTorch's is under way takes no room from ours: it would cost the freeing of one here and a fresh
// one at the next send.
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

// quiet reports whether nobody has, or will have, an idle region of ours.
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

// underWay reports whether somebody may still open r by the number of its descriptor.
func (t *regionTable) underWay(r *region) bool {
	if r.opens >= r.sends {
		r.sends, r.opens, r.peers = 0, 0, nil
	}
	r.peers = slices.DeleteFunc(r.peers, func(p process) bool { return !p.alive() })
	return len(r.peers) > 0
}

// openLater is underWay for the others, after a look.
func (t *regionTable) openLater(r *region) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.look()
	return t.underWay(r)
}

// notice is look for the others.
func (t *regionTable) notice() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.look()
}

// look takes note of the openings since the last look.
func (t *regionTable) look() {
	if t.watch != nil {
		t.watch.Opened(func(id int) {
			if r := t.watched[id]; r != nil {
				r.opens++
			}
		})
	}
}

// expect notes that r will be opened once, by a peer if it is not by this process.
func (t *regionTable) expect(r *region, by *process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.look()
	if by != nil && r.watch == 0 {
		t.observe(r)
	}
	t.underWay(r) // begins to count anew if nothing is
	if r.watch != 0 || by != nil {
		r.sends++
	}
	if by != nil && !slices.Contains(r.peers, *by) {
		r.peers = append(r.peers, *by)
	}
}

// observe puts r into the watch. Where that is not to be had r stays under way while its receiver
// lives.
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
	if !t.mu.TryLock() { // whoever has it may be who has met the fault
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
