package sim_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/cuda/cublas"
	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/cuda/sim"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A word is a number of the host that the device reaches.
type word struct {
	*atomic.Uint32
	at cudriver.Ptr
}

func hostWord(t *testing.T, d *sim.Driver) word {
	t.Helper()
	page := make([]byte, 1<<13)
	testutil.NoError(t, d.MemHostRegister(page, cudriver.HostPortable|cudriver.HostDeviceMap))
	at, err := d.MemHostGetDevicePointer(page)
	testutil.NoError(t, err)
	if at != cudriver.Ptr(uintptr(unsafe.Pointer(unsafe.SliceData(page)))) {
		t.Errorf("registered memory is at %#x, which is not the host's address", at)
	}
	return word{(*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(page))), at}
}

// beside runs calls on another thread of the same context.
func beside(t *testing.T, d *sim.Driver, calls func() error) (done chan error) {
	t.Helper()
	ctx, err := d.CtxGetCurrent()
	testutil.NoError(t, err)
	done = make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		done <- errors.Join(d.CtxSetCurrent(ctx), calls())
	}()
	return done
}

// stays reports whether something has not come to an end, and will not soon.
func stays(done chan error) bool {
	select {
	case <-done:
		return false
	case <-time.After(30 * time.Millisecond):
		return true
	}
}

// Behind a stream that waits stands what others of its queue were given later: with one queue, all.
func TestStream_OthersStandBehindOneThatWaits(t *testing.T) {
	for connections, want := range map[string]int{"": 8, "1": 1, "2": 2, "32": 32, "99": 32, "none": 8} {
		t.Run(connections, func(t *testing.T) {
			t.Setenv("CUDA_DEVICE_MAX_CONNECTIONS", connections)
			_, d := open(t, 1)
			w := hostWord(t, d)
			p, err := d.MemAlloc(4096)
			testutil.NoError(t, err)
			var all []cudriver.Stream
			for range want + 1 {
				all = append(all, stream(t, d))
			}
			testutil.NoError(t, d.StreamWaitValue32(all[0], w.at, 1))
			for _, s := range all[1:] {
				testutil.NoError(t, d.MemsetD8Async(p, 1, 1, s))
			}
			for i, s := range all[1:] {
				if i+1 < want {
					testutil.NoError(t, d.StreamSynchronize(s))
				} else if fails(t, cudriver.ErrorNotReady, d.StreamQuery(s)); t.Failed() {
					t.Errorf("stream %d has gone on", i+1)
				}
			}
			w.Store(1)
			testutil.NoError(t, d.CtxSynchronize())
		})
	}
}

// A clock in the device's memory that a side stream ends hangs where there is one queue; a number
// of the host does not.
func TestStream_NothingInAQueueEndsAWaitOfThatQueue(t *testing.T) {
	t.Setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1")
	_, d := open(t, 1)
	p, err := d.MemAlloc(4)
	testutil.NoError(t, err)
	s, side := stream(t, d), stream(t, d)
	testutil.NoError(t, d.MemsetD32Async(p, 0, 1, s))
	testutil.NoError(t, d.StreamSynchronize(s))
	testutil.NoError(t, d.StreamWaitValue32(s, p, 1))
	testutil.NoError(t, d.StreamWriteValue32(side, p, 1))
	if done := beside(t, d, func() error { return d.StreamSynchronize(side) }); !stays(done) {
		t.Error("a stream has ended the wait that it stands behind")
	}
}

func TestStream_AQueueTakesSoManyLaunches(t *testing.T) {
	t.Setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1")
	for name, entries := range map[string]int{"fills": 1, "products": 4} {
		t.Run(name, func(t *testing.T) {
			_, d := open(t, 1)
			w := hostWord(t, d)
			p, err := d.MemAlloc(4096)
			testutil.NoError(t, err)
			s, other := stream(t, d), stream(t, d)
			b := d.BLAS()
			h, err := b.Create()
			testutil.NoError(t, errors.Join(err, b.SetStream(h, s)))
			testutil.NoError(t, b.GemmStridedBatched(h, product(p, 2)))
			testutil.NoError(t, d.StreamSynchronize(s))
			testutil.NoError(t, d.StreamWaitValue32(s, w.at, 1))
			var n atomic.Int64
			done := beside(t, d, func() (err error) {
				for range 2000 {
					if name == "fills" {
						err = errors.Join(err, d.MemsetD8Async(p, 1, 1, other))
					} else {
						err = errors.Join(err, b.GemmStridedBatched(h, product(p, 2)))
					}
					n.Add(1)
				}
				return err
			})
			for last := int64(-1); n.Load() != last; time.Sleep(50 * time.Millisecond) {
				last = n.Load()
			}
			if got := int(n.Load()); got < 1000/entries || got > 1100/entries {
				t.Errorf("it takes %d, of %d entries each", got, entries)
			}
			w.Store(1)
			testutil.NoError(t, <-done)
			testutil.NoError(t, d.CtxSynchronize())
		})
	}
}

// product is one of two square matrices, which are all at p.
func product(p cudriver.Ptr, n int) cublas.Gemm {
	m := cublas.Matrix{Ptr: p, Leading: n, Stride: n * n}
	return cublas.Gemm{M: n, N: n, K: n, A: m, B: m, C: m, Batch: 1}
}

// The first product of a shape loads code, as CUDA does lazily.
func TestBLAS_WaitsForTheDeviceAtANewShape(t *testing.T) {
	_, d := open(t, 1)
	w := hostWord(t, d)
	p, err := d.MemAlloc(4096)
	testutil.NoError(t, err)
	s, b := stream(t, d), d.BLAS()
	h, err := b.Create()
	testutil.NoError(t, errors.Join(err, b.SetStream(h, s), b.GemmStridedBatched(h, product(p, 2)),
		d.StreamSynchronize(s)))
	testutil.NoError(t, d.StreamWaitValue32(s, w.at, 1))
	testutil.NoError(t, b.GemmStridedBatched(h, product(p, 2)))
	if done := beside(t, d, func() error { return b.GemmStridedBatched(h, product(p, 3)) }); !stays(done) {
		t.Error("another shape does not wait")
	} else {
		w.Store(1)
		testutil.NoError(t, <-done)
	}
	testutil.NoError(t, d.StreamSynchronize(s))
	testutil.NoError(t, b.Destroy(h))
	if err := b.GemmStridedBatched(h, product(p, 2)); !errors.Is(err, cublas.Status(1)) {
		t.Errorf("by a handle that was destroyed: %v", err)
	}
}

func TestContext_ItsEndWaitsForTheDevice(t *testing.T) {
	_, d := open(t, 1)
	w, s := hostWord(t, d), stream(t, d)
	testutil.NoError(t, d.StreamWaitValue32(s, w.at, 1))
	done := beside(t, d, func() error { return d.PrimaryCtxRelease(0) })
	if !stays(done) {
		t.Error("it does not wait")
	}
	w.Store(1)
	testutil.NoError(t, <-done)
}

func TestLegacyMemory_ClosingWaitsForTheDevice(t *testing.T) {
	devices, d := open(t, 1)
	said, _ := child(t, devices, "legacy", "", true)
	p, err := d.IPCOpenMemHandle(handle(said[:128]))
	testutil.NoError(t, err)
	w, s := hostWord(t, d), stream(t, d)
	testutil.NoError(t, d.StreamWaitValue32(s, w.at, 1))
	done := beside(t, d, func() error { return d.IPCCloseMemHandle(p) })
	if !stays(done) {
		t.Error("it does not wait")
	}
	w.Store(1)
	testutil.NoError(t, <-done)
}

// Memory of cuMemAlloc is the context's that allocated it, and opened memory the one's that opened
// it; what another context does there ends that context. Copies between contexts are of memory of
// devices alone.
func TestContext_ReachesItsOwnMemory(t *testing.T) {
	devices, d := open(t, 2)
	said, _ := child(t, devices, "legacy", "", true)
	p, err := d.MemAlloc(4096)
	testutil.NoError(t, err)
	q, err := d.IPCOpenMemHandle(handle(said[:128]))
	testutil.NoError(t, err)
	w, s := hostWord(t, d), stream(t, d)
	near, err := d.CtxGetCurrent()
	testutil.NoError(t, err)
	far, err := d.PrimaryCtxRetain(1)
	testutil.NoError(t, errors.Join(err, d.CtxSetCurrent(far)))
	away, err := d.MemAlloc(4096)
	testutil.NoError(t, err)
	twice, err := d.IPCOpenMemHandle(handle(said[:128])) // of the first device, which the second reaches
	testutil.NoError(t, err)
	if twice == q {
		t.Error("two contexts have it at one address")
	}
	fails(t, cudriver.ErrorInvalidValue, d.IPCCloseMemHandle(q))
	testutil.NoError(t, d.IPCCloseMemHandle(twice))
	d.Part(true)
	_, err = d.IPCOpenMemHandle(handle(said[:128]))
	fails(t, cudriver.ErrorMapFailed, err)
	d.Part(false)
	testutil.NoError(t, d.CtxSetCurrent(near))
	testutil.NoError(t, errors.Join(d.MemcpyPeerAsync(p, near, away, far, 4096, s), d.StreamSynchronize(s)))
	fails(t, cudriver.ErrorInvalidValue, d.MemcpyPeerAsync(away, far, w.at, near, 4, s))
	fails(t, cudriver.ErrorInvalidValue, d.MemcpyPeerAsync(w.at, near, away, far, 4, s))
	for _, at := range []cudriver.Ptr{p, q} {
		testutil.NoError(t, d.CtxSetCurrent(far))
		lost := stream(t, d)
		testutil.NoError(t, d.MemsetD8Async(at, 1, 1, lost))
		fails(t, cudriver.ErrorIllegalAddress, d.StreamSynchronize(lost))
		testutil.NoError(t, errors.Join(d.PrimaryCtxRelease(1), d.CtxSetCurrent(near))) // a lost one ends
		far, err = d.PrimaryCtxRetain(1)
		testutil.NoError(t, err)
	}
}

// What maps, unmaps, loads, allocates or registers waits as long as a stream does.
func TestDriver_CallsWaitWhereAStreamDoes(t *testing.T) {
	_, d := open(t, 1)
	w, s := hostWord(t, d), stream(t, d)
	h, err := d.MemCreate(2*mib, cudriver.Pinned(0, true))
	testutil.NoError(t, err)
	p, err := mapped(d, h, 2*mib, 0)
	testutil.NoError(t, err)
	legacy, err := d.MemAlloc(4096)
	testutil.NoError(t, err)
	m, err := d.ModuleLoadData([]byte(counting + "\x00"))
	testutil.NoError(t, err)
	b := d.BLAS()
	blas, err := b.Create()
	testutil.NoError(t, err)
	host := make([]byte, 8192)
	for i, c := range []struct {
		name string
		call func() error
	}{
		{"cuMemSetAccess", func() error {
			return d.MemSetAccess(p, 2*mib, []cudriver.AccessDesc{cudriver.Access(0, cudriver.AccessReadWrite)})
		}},
		{"cuMemUnmap", func() error { return d.MemUnmap(p, 2*mib) }},
		{"cuMemAlloc", func() error { return second(d.MemAlloc(4096)) }},
		{"cuMemFree", func() error { return d.MemFree(legacy) }},
		{"cuMemHostRegister", func() error { return d.MemHostRegister(host, 0) }},
		{"cuMemHostUnregister", func() error { return d.MemHostUnregister(host) }},
		{"cuModuleLoadDataEx", func() error { return second(d.ModuleLoadData([]byte(counting + "\x00"))) }},
		{"cuModuleUnload", func() error { return d.ModuleUnload(m) }},
		{"cublasCreate", func() error { return second(b.Create()) }},
		{"cublasDestroy", func() error { return b.Destroy(blas) }},
	} {
		want := uint32(i + 1)
		testutil.NoError(t, d.StreamWaitValue32(s, w.at, want))
		done := beside(t, d, c.call)
		if !stays(done) {
			t.Errorf("%s does not wait", c.name)
			return
		}
		w.Store(want)
		testutil.NoError(t, <-done)
	}
}

// What is left counts, also when its context has ended.
func TestDriver_CountsWhatIsOpen(t *testing.T) {
	_, d := open(t, 1)
	m, err := d.ModuleLoadData([]byte(counting + "\x00"))
	testutil.NoError(t, err)
	b := d.BLAS()
	h, err := b.Create()
	testutil.NoError(t, err)
	s := stream(t, d)
	if got, want := d.Open(), (sim.Open{Contexts: 1, Modules: 1, BLAS: 1, Streams: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	testutil.NoError(t, errors.Join(b.Destroy(h), d.ModuleUnload(m)))
	if got, want := d.Open(), (sim.Open{Contexts: 1, Streams: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	testutil.NoError(t, d.PrimaryCtxRelease(0))
	if got, want := d.Open(), (sim.Open{Streams: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	_ = s
}

// The driver takes some of the memory for itself, and gives it back with the context. What it says
// is free is not exact.
func TestDevice_TheDriverTakesMemoryForItself(t *testing.T) {
	devices, d := open(t, 1)
	free := func() uint64 {
		n, total, err := d.MemGetInfo()
		testutil.NoError(t, err)
		if total != size {
			t.Errorf("%d bytes in all", total)
		}
		return n
	}
	first := free()
	_, err := d.ModuleLoadData([]byte(counting + "\x00"))
	testutil.NoError(t, err)
	second := free()
	_, err = d.BLAS().Create()
	testutil.NoError(t, err)
	third := free()
	if first >= size || second >= first || third >= second {
		t.Errorf("free are %d with a context, %d with a kernel, %d with cuBLAS", first, second, third)
	}
	used(t, devices, 0)
	_, err = d.MemCreate(size, cudriver.Pinned(0, true))
	fails(t, cudriver.ErrorOutOfMemory, err)
	_, c := child(t, devices, "legacy", "", true)
	fourth := free()
	if fourth >= third {
		t.Errorf("free are %d, and with a context of another process %d", third, fourth)
	}
	testutil.NoError(t, c.Process.Kill())
	c.Wait()
	if n := free(); n < third-mib/2 || n > third+mib/2 {
		t.Errorf("free are %d, and after a death %d", third, n)
	}
	said := map[uint64]bool{}
	for range 8 {
		said[free()] = true
	}
	if len(said) < 2 {
		t.Errorf("free are always %d: a program may take that for exact", third)
	}
}

// What takes long on a GPU takes long here, if it is told.
func TestDriver_TakesTheTimeItIsTold(t *testing.T) {
	for name, times := range map[string]sim.Times{"init": {Init: time.Second / 10},
		"context": {Context: time.Second / 10}, "load": {Load: time.Second / 10}} {
		t.Setenv(sim.TimesKey, times.String())
		var begin time.Time
		took := map[string]time.Duration{}
		note := func(name string) { took[name] = time.Since(begin); begin = time.Now() }
		devices, err := sim.Create(1, size)
		testutil.NoError(t, err)
		t.Cleanup(func() { devices.Close() })
		runtime.LockOSThread()
		d := sim.New(devices.Paths())
		begin = time.Now()
		testutil.NoError(t, d.Init())
		note("init")
		c, err := d.PrimaryCtxRetain(0)
		testutil.NoError(t, errors.Join(err, d.CtxSetCurrent(c)))
		note("context")
		_, err = d.ModuleLoadData([]byte(counting + "\x00"))
		testutil.NoError(t, err)
		note("load")
		if took[name] < time.Second/10 {
			t.Errorf("%s takes %v", name, took)
		}
		runtime.UnlockOSThread()
	}
	defer func() {
		if r := fmt.Sprint(recover()); r != `sim: SHOAL_CUDA_SIMULATE_TIMES is "soon": expected integer` {
			t.Error(r)
		}
	}()
	t.Setenv(sim.TimesKey, "soon")
	sim.New(nil)
}
