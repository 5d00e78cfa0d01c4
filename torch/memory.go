package torch

import (
	"errors"
	"os"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/internal/tree"
	"github.com/shoal-mp/shoal/tensor"
)

// Note [Descriptors of the script] PyTorch keeps a descriptor open for each storage that it has
// received as a file without a name. A script that keeps its batches, such as an evaluation that
// keeps labels, would so reach its limit. A worker can do two things about that. It puts all
// tensors of a batch into one storage. And when the script has used half of its descriptors, the
// worker sends batches as named files, of which PyTorch keeps none open. Python's own workers do
// that after torch.multiprocessing.set_sharing_strategy("file_system"). That call leaves no trace
// from which a process of another program could learn of it.

// A scriptFiles follows how many descriptors the process that receives the batches has open.
type scriptFiles struct {
	pid     int // 0 if nobody is followed
	workers int // that send to it
	named   bool
	until   int // batches until the next look
}

// maxPause bounds how many batches are sent between two looks.
const maxPause = 64

// strategy returns how the next batch is to be sent.
func (f *scriptFiles) strategy() Strategy {
	if f.pid == 0 {
		return Auto
	}
	if f.until--; f.until < 0 {
		f.look()
	}
	if f.named {
		return FileSystem
	}
	return Auto
}

// look decides about the batches up to the next look. Named files are sent from half of the limit
// on, and no longer under a quarter of it.
func (f *scriptFiles) look() {
	open, limit, err := sys.OpenFilesOf(f.pid)
	if err != nil || limit < 0 {
		f.named, f.until = false, maxPause
		return
	}
	f.named = open >= limit/2 || f.named && open >= limit/4
	f.until = min(maxPause, max(0, int(limit/2-open)/(4*max(1, f.workers))))
}

// follow has batches sent to the parent of this process.
func (w *loaderWorker) follow() {
	if pid := os.Getppid(); pid > 1 {
		w.script = scriptFiles{pid: pid, workers: w.Workers}
	}
}

// batchMemory makes the tensors of a batch, with any values, in one storage that PyTorch can map.
// Inner fields stay in this process.
func (w *loaderWorker) batchMemory(fields []tree.Field) (all []*tensor.Tensor, err error) {
	all = make([]*tensor.Tensor, len(fields))
	defer func() {
		if err != nil {
			for _, t := range all {
				if t != nil {
					t.Close()
				}
			}
		}
	}()
	size := 0
	places := make([]int, len(fields))
	for k, f := range fields {
		if f.Inner {
			continue
		}
		n := f.DType.Size()
		for _, d := range f.Shape {
			n *= d
		}
		places[k] = size
		size = (size + n + cacheLine - 1) / cacheLine * cacheLine
	}
	how := w.script.strategy()
	block, err := Options{Strategy: how}.Empty(tensor.Uint8, size)
	if how == FileSystem && errors.Is(err, arena.ErrNoSpace) { // /dev/shm is small in many containers
		block, err = Empty(tensor.Uint8, size)
	}
	if err != nil {
		return all, err
	}
	defer block.Close()
	for k, f := range fields {
		if f.Inner {
			all[k] = tensor.Empty(f.DType, f.Shape...)
			continue
		}
		all[k], err = block.Storage().View(f.DType, f.Shape, rowMajor(f.Shape), places[k]/f.DType.Size())
		if err != nil {
			return all, err
		}
	}
	return all, nil
}
