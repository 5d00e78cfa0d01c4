package data_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/shoal-mp/shoal/data"
	backends "github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A device is one that locks pages, or is not there, or cannot.
type device struct {
	err  atomic.Pointer[error]
	ends sync.Map // of locked bytes, by where they begin
}

func (d *device) lock(b []byte) (func() error, error) {
	if err := d.err.Load(); err != nil {
		return nil, *err
	}
	d.ends.Store(unsafe.SliceData(b), len(b))
	return func() error { d.ends.Delete(unsafe.SliceData(b)); return nil }, nil
}

func (d *device) has(t *tensor.Tensor) bool {
	n, ok := d.ends.Load(unsafe.SliceData(t.Storage().Bytes()))
	return ok && n.(int) == len(t.Storage().Bytes())
}

// locked counts the blocks that are.
func (d *device) locked() (n int) {
	d.ends.Range(func(any, any) bool { n++; return true })
	return n
}

var pairs = data.RegisterCollate("test.pairs",
	func(_ context.Context, s []data.Sample) (data.Batch, error) { return data.Stack(s) })

func TestOptions_PinMemoryLocksBatches(t *testing.T) {
	gpu := new(device)
	// in the place of package cuda's, which this program has too
	mine, _ := backends.Find("cuda")
	mine.Lock = gpu.lock
	backends.Register("cuda", mine)
	none, broken := fmt.Errorf("%w: none is there", tensor.ErrDevice), errors.New("out of luck")
	oneOfEach(func(name string, workers int, kind data.Kind) {
		o := data.Options{BatchSize: 8, Workers: workers, Kind: kind, PinMemory: true}
		for what, change := range map[string]func(*data.Options){
			"rows": func(*data.Options) {}, "shared": func(o *data.Options) { o.Shared = true },
			"single":  func(o *data.Options) { o.BatchSize = data.Single },
			"collate": func(o *data.Options) { o.Collate = pairs },
		} {
			o := o
			change(&o)
			l := data.NewLoader(&noisy{N: 20}, o)
			n := 0
			for b, err := range l.Batches(t.Context()) {
				if err != nil {
					t.Fatalf("%s, %s: %v", name, what, err)
				}
				for k, f := range b {
					if !f.IsShared() || !gpu.has(f) {
						t.Errorf("%s, %s: field %d is not in locked memory", name, what, k)
					}
				}
				n++
				if o.Shared {
					for _, f := range b {
						f.Close()
					}
				}
			}
			if n != 3 && o.BatchSize == 8 || n != 20 && o.BatchSize != 8 {
				t.Errorf("%s, %s: %d batches", name, what, n)
			}
			l.Close()
			testutil.EventuallyNoError(t, func() error {
				if n := gpu.locked(); n != 0 {
					runtime.GC() // frees a Collate's batch
					return fmt.Errorf("%s, %s: %d blocks are locked when the loader is closed", name, what, n)
				}
				return nil
			})
		}
		gpu.err.Store(&none)
		if got := loadAll(t, data.NewLoader(&noisy{N: 20}, o)); len(got) != 20 {
			t.Errorf("%s: %d samples without a device", name, len(got))
		}
		gpu.err.Store(&broken)
		if _, err := read(t, data.NewLoader(&noisy{N: 20}, o), 0); !errors.Is(err, broken) {
			t.Errorf("%s: %v, want that of the device", name, err)
		}
		gpu.err.Store(nil)
	})
}
