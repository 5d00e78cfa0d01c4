package vm

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// ErrLaunch is wrapped by [Entry.Run] if a GPU would reject the grid, the block or the size of the
// arguments.
var ErrLaunch = errors.New("ptx: invalid launch")

// A Launch holds the parameters for running an entry. The kernel may write to the Bytes of
// Memory. Run does not change the Launch itself.
type Launch struct {
	Grid, Block [3]uint32
	Args        []byte // must have Entry.ArgsSize bytes, in the layout of a C struct
	Memory      []Region
	Loose       bool // threads do not run in lockstep
}

// threadsPerBlock returns the number of threads per block.
func (l Launch) threadsPerBlock() int { return int(l.Block[0] * l.Block[1] * l.Block[2]) }

// Check returns an error that wraps [ErrLaunch] if Run would reject the launch.
func (e *Entry) Check(l Launch) error {
	limits := [2][3]uint32{{1<<31 - 1, 65535, 65535}, {1024, 1024, 64}}
	for i, size := range [2][3]uint32{l.Grid, l.Block} {
		for j, n := range size {
			if n == 0 || n > limits[i][j] {
				return fmt.Errorf("%w: grid of %v blocks of %v", ErrLaunch, l.Grid, l.Block)
			}
		}
	}
	if l.threadsPerBlock() > 1024 || len(l.Args) != e.ArgsSize {
		return fmt.Errorf("%w: %s with %d threads in a block and %d bytes of arguments of %d", ErrLaunch,
			e.Name, l.threadsPerBlock(), len(l.Args), e.ArgsSize)
	}
	return nil
}

// Run runs a kernel on up to GOMAXPROCS goroutines, and waits until they have ended. The error
// is a [*Fault], or wraps [ErrLaunch]. After a fault, blocks that are running complete; no
// further blocks start. Writes before the fault remain. The caller must not write to Memory
// meanwhile.
func (e *Entry) Run(l Launch) error {
	if err := e.Check(l); err != nil {
		return err
	}
	total := int64(l.Grid[0]) * int64(l.Grid[1]) * int64(l.Grid[2])
	var next atomic.Int64
	var fault atomic.Pointer[Fault]
	work := func() {
		b := e.newBlock(l)
		for n := next.Add(1) - 1; n < total && fault.Load() == nil; n = next.Add(1) - 1 {
			if f := b.run(uint64(n)); f != nil {
				fault.CompareAndSwap(nil, f)
			}
		}
	}
	var others sync.WaitGroup
	for range min(int64(runtime.GOMAXPROCS(0)), total) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	if f := fault.Load(); f != nil {
		return f
	}
	return nil
}

// A block is a set of threads that share memory and barriers. A goroutine reuses it for many blocks
// of the grid.
type block struct {
	entry  *Entry
	args   []byte
	memory []Region
	grid   [3]uint32
	shared []byte
	warps  []*warp
}

func (e *Entry) newBlock(l Launch) *block {
	threads := l.threadsPerBlock()
	words := make([]uint64, (e.static+7)/8) // for alignment
	b := &block{entry: e, args: l.Args, memory: l.Memory, grid: l.Grid}
	b.shared = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), e.static)
	together := lanes
	if l.Loose {
		together = 1
	}
	for first := 0; first < threads; first += together {
		w := &warp{block: b, all: ^mask(0) >> (lanes - min(together, threads-first)), rows: make([]row, max(e.rows, 1))}
		b.warps = append(b.warps, w)
		for value, r := range e.constant {
			w.rows[r].fill(value)
		}
		for i, axis := range "xyz" {
			w.set("%ntid."+string(axis), func(int) uint64 { return uint64(l.Block[i]) })
			w.set("%nctaid."+string(axis), func(int) uint64 { return uint64(l.Grid[i]) })
			w.set("%tid."+string(axis), func(lane int) uint64 { return uint64(split(uint64(first+lane), l.Block)[i]) })
		}
		w.set("%laneid", func(lane int) uint64 { return uint64((first + lane) % lanes) })
	}
	return b
}

func (r *row) fill(v uint64) {
	for i := range r {
		r[i] = v
	}
}

// specials lists the special registers.
var specials = []string{
	"%tid.x", "%tid.y", "%tid.z", "%ntid.x", "%ntid.y", "%ntid.z", "%ctaid.x", "%ctaid.y", "%ctaid.z",
	"%nctaid.x", "%nctaid.y", "%nctaid.z", "%laneid",
}

func (w *warp) set(name string, f func(lane int) uint64) {
	if r, ok := w.entry.special[name]; ok {
		for lane := range w.rows[r] {
			w.rows[r][lane] = f(lane)
		}
	}
}

// split converts the index n to a position in a box of the given size. x varies fastest.
func split(n uint64, box [3]uint32) [3]uint32 {
	x, y := uint64(box[0]), uint64(box[1])
	return [3]uint32{uint32(n % x), uint32(n / x % y), uint32(n / x / y)}
}

// run runs the block of the grid with the given number, and returns the fault that ended it, or
// nil.
func (b *block) run(number uint64) (fault *Fault) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *Fault:
			fault = r
		default:
			panic(r)
		}
	}()
	at := split(number, b.grid)
	for _, w := range b.warps {
		w.live, w.pc = w.all, [lanes]int{}
		for i, axis := range "xyz" {
			w.set("%ctaid."+string(axis), func(int) uint64 { return uint64(at[i]) })
		}
	}
	last := len(b.warps) - 1
	for left, turn := true, number; left; turn++ {
		left = false
		for i, w := range b.warps {
			if turn&1 != 0 { // reversed, so that kernels cannot rely on the order of warps
				w = b.warps[last-i]
			}
			w.run()
			w.parked = 0
			left = left || w.live != 0
		}
	}
	return nil
}
