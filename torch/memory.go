package torch

import (
	"errors"
	"os"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/internal/tree"
	"github.com/shoal-mp/shoal/tensor"
)

// Note [Descriptors of the script] PyTorch keeps a descriptor open for each storage received as a
// file without a name. A script that retains its batches, for example the labels of an evaluation,
// would therefore reach its limit on open files. A worker takes two measures. It places all tensors
// of a batch into one storage. And once the script has used half of its limit, the worker sends
// batches as named files, for which PyTorch keeps no descriptor. Python's own workers do the latter
// after torch.multiprocessing.set_sharing_strategy("file_system"), but that setting is not visible
// to a process of another program.

// scriptFiles tracks the open descriptors of the process that receives the batches, and selects
// the strategy for sending them. The zero value tracks no process. One goroutine may use it.
type scriptFiles struct {
	pid     int // 0 if no process is tracked
	workers int // the number of workers that send to the process
	named   bool
	until   int // batches until the next check
}

// maxPause is the largest number of batches between two checks.
const maxPause = 64

// nextStrategy returns the strategy for the next batch, [Auto] or [FileSystem]. It must be
// called once per batch.
func (f *scriptFiles) nextStrategy() Strategy {
	if f.pid == 0 {
		return Auto
	}
	if f.until--; f.until < 0 {
		f.countDescriptors()
	}
	if f.named {
		return FileSystem
	}
	return Auto
}

// countDescriptors counts the descriptors of the receiver and sets f.named and f.until for the
// batches until the next check. It switches to named files at half of the limit, and back below
// a quarter. If they cannot be counted, the batches are not named files.
func (f *scriptFiles) countDescriptors() {
	open, limit, err := sys.OpenFilesOf(f.pid)
	if err != nil || limit < 0 {
		f.named, f.until = false, maxPause
		return
	}
	f.named = open >= limit/2 || f.named && open >= limit/4
	f.until = min(maxPause, max(0, int(limit/2-open)/(4*max(1, f.workers))))
}

// trackParent makes w.script track the parent process, which receives the batches. It does
// nothing if the parent has ended.
func (w *loaderWorker) trackParent() {
	if pid := os.Getppid(); pid > 1 {
		w.script = scriptFiles{pid: pid, workers: w.Workers}
	}
}

// batchMemory allocates the tensors of a batch, uninitialized, in one storage that PyTorch can
// map. Inner fields stay in private memory. The caller must close the tensors, which batchMemory
// does itself on an error.
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
	how := w.script.nextStrategy()
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
		all[k], err = block.Storage().View(f.DType, f.Shape, rowMajorStrides(f.Shape), places[k]/f.DType.Size())
		if err != nil {
			return all, err
		}
	}
	return all, nil
}
