package torch

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// cudaMessage is a message of a PyTorch with a GPU: 15 arguments in this order.
func cudaMessage(change func(args python.Tuple)) *pickle.Object {
	size := &pickle.Object{Class: named("torch.Size"), Args: python.Tuple{python.Tuple{2, 3}}}
	args := python.Tuple{tensorClass, size, python.Tuple{3, 1}, 4, typedStorage, named("torch.float32"), 1,
		append([]byte("\x01c"), bytes.Repeat([]byte("H"), 64)...), 96, 512, false,
		[]byte("/torch_4242_1234567890"), 3, bytes.Repeat([]byte("E"), 64), true}
	if change != nil {
		change(args)
	}
	return &pickle.Object{Class: rebuildCUDA, Args: args}
}

func received(t *testing.T, message any) (any, error) {
	t.Helper()
	b := testutil.Value(pickle.Marshal(message, 4))(t)
	return (&importer{ctx: testContext(t)}).unmarshal(b)
}

func TestCUDATensor_IsReadFromItsForm(t *testing.T) {
	v, err := received(t, cudaMessage(nil))
	if err != nil {
		t.Fatal(err)
	}
	want := &CUDATensor{DType: tensor.Float32, Shape: []int{2, 3}, Strides: []int{3, 1}, Offset: 4, Device: 1,
		Handle: append([]byte("\x01c"), bytes.Repeat([]byte("H"), 64)...), StorageBytes: 96, StorageOffset: 512,
		Counters: "/torch_4242_1234567890", Slot: 3, Event: bytes.Repeat([]byte("E"), 64), received: true}
	if !reflect.DeepEqual(v, want) {
		t.Errorf("%+v, not %+v", v, want)
	}
	var as *tensor.Tensor
	if err := assign(&as, v); !errors.Is(err, ErrCUDA) || !errors.Is(err, ErrUnsupported) {
		t.Errorf("as a tensor: %v", err)
	}
	if err := want.Close(); err != nil { // its sender has ended before
		t.Error(err)
	}
	if _, err := pt.Marshal(v, pt.MarshalOptions{}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("sent on: %v", err)
	}

	v, err = received(t, cudaMessage(
		func(args python.Tuple) { args[14], args[0], args[10] = false, parameterClass, true }))
	if c, ok := v.(*CUDATensor); !ok || c.Event != nil || !c.Parameter || !c.RequiresGrad {
		t.Errorf("whose sender has waited: %+v, %v", v, err)
	}
	v, err = received(t, cudaMessage(func(args python.Tuple) { // the form in which PyTorch sends an empty tensor
		args[3], args[7], args[8], args[9], args[11], args[12], args[13], args[14] = 0, nil, 0, 0, nil, 0, nil, nil
	}))
	if c, ok := v.(*CUDATensor); !ok || c.Handle != nil || c.Close() != nil {
		t.Errorf("without memory: %+v, %v", v, err)
	}
	for name, change := range map[string]func(python.Tuple){
		"the class":    func(args python.Tuple) { args[0] = named("torch.Size") },
		"a size":       func(args python.Tuple) { args[1] = python.Tuple{-1} },
		"the strides":  func(args python.Tuple) { args[2] = "x" },
		"the offset":   func(args python.Tuple) { args[3] = -1 },
		"the dtype":    func(args python.Tuple) { args[5] = named("torch.Size") },
		"the handle":   func(args python.Tuple) { args[7] = "x" },
		"a number":     func(args python.Tuple) { args[8] = 1 << 60 },
		"no handle":    func(args python.Tuple) { args[7] = nil },
		"the place":    func(args python.Tuple) { args[9] = 514 },
		"the gradient": func(args python.Tuple) { args[10] = 1 },
		"the counters": func(args python.Tuple) { args[11] = "x" },
		"the slot":     func(args python.Tuple) { args[12] = 10_000 },
		"the event":    func(args python.Tuple) { args[13] = 1 },
		"the wait":     func(args python.Tuple) { args[14] = nil },
	} {
		if v, err := received(t, cudaMessage(change)); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v, %v", name, v, err)
		}
	}
	if _, err := received(t, &pickle.Object{Class: rebuildCUDA, Args: python.Tuple{tensorClass}}); !errors.Is(err,
		ErrProtocol) {
		t.Errorf("of one part: %v", err)
	}
}

func TestCUDAHandle_ReadsEachVersion(t *testing.T) {
	raw := bytes.Repeat([]byte("H"), 64)
	for name, c := range map[string]struct {
		handle []byte
		want   error
	}{
		"raw": {raw, nil}, "without a version": {append([]byte("c"), raw...), nil},
		"1": {append([]byte("\x01c"), raw...), nil}, "2": {append([]byte("\x02c"), raw...), nil},
		"3":                     {append([]byte("\x03c"), raw...), nil},
		"of a later version":    {append([]byte("\x04c"), raw...), ErrUnsupported},
		"an expandable segment": {append([]byte("\x01e"), raw...), ErrUnsupported},
		"short":                 {append([]byte("\x01c"), raw[1:]...), ErrProtocol},
		"of another kind":       {append([]byte("\x01x"), raw...), ErrProtocol}, "empty": {nil, ErrProtocol},
	} {
		memory, err := CUDAHandle(c.handle)
		if !errors.Is(err, c.want) || err == nil && !bytes.Equal(memory[:], raw) {
			t.Errorf("%s: %v, %v", name, memory, err)
		}
	}
}

// counters makes the file of a sender that has counted three openers, and 1 in slot 3.
func counters(t *testing.T, size int) string {
	t.Helper()
	name := testutil.Value(freshName())(t)
	b := make([]byte, size)
	b[0] = 3
	b[headerSize+8*3] = 1
	if err := os.WriteFile(shmDir+name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(shmDir + name) })
	return name
}

// TestCUDATensor_IsGivenBackOnce gives memory back once, also if the message could not be used.
func TestCUDATensor_IsGivenBackOnce(t *testing.T) {
	const size = headerSize + 8*counterSlots
	count := func(name string) (openers uint32, slot int64) {
		b := testutil.Value(os.ReadFile(shmDir + name))(t)
		return binary.LittleEndian.Uint32(b), int64(binary.LittleEndian.Uint64(b[headerSize+8*3:]))
	}
	name := counters(t, size)
	with := func(args python.Tuple) { args[11] = []byte(name) }
	v := testutil.Value(received(t, cudaMessage(with)))(t)
	if _, slot := count(name); slot != 1 {
		t.Fatalf("it is counted down before it is closed: %d", slot)
	}
	CloseAll(python.Tuple{v, v})
	if openers, slot := count(name); openers != 3 || slot != 0 {
		t.Errorf("closed twice, the counters are %d and %d", openers, slot)
	}
	name = counters(t, size)
	if _, err := received(t, python.Tuple{cudaMessage(with), named("os.system")}); !errors.Is(err, ErrGlobal) {
		t.Fatalf("a message with a name that is not allowed: %v", err)
	}
	name = counters(t, size)
	if _, err := received(t, python.Tuple{cudaMessage(with), &pickle.Object{Class: rebuildTensor}}); err == nil {
		t.Fatal("half a tensor was received")
	}
	if _, slot := count(name); slot != 0 {
		t.Errorf("memory of a message that could not be used was not given back: %d", slot)
	}
	name = counters(t, size-1)
	if err := testutil.Value(received(t, cudaMessage(with)))(t).(*CUDATensor).Close(); !errors.Is(err, ErrTruncated) {
		t.Errorf("counters that are cut short: %v", err)
	}
	name = counters(t, size)
	if err := os.WriteFile(shmDir+name, make([]byte, size), 0o600); err != nil { // no process has it open
		t.Fatal(err)
	}
	if err := testutil.Value(received(t, cudaMessage(with)))(t).(*CUDATensor).Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(shmDir + name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the last one has left the counters: %v", err)
	}
	name = "/../x"
	if err := testutil.Value(received(t, cudaMessage(with)))(t).(*CUDATensor).Close(); !errors.Is(err, ErrProtocol) {
		t.Errorf("counters outside of shared memory: %v", err)
	}
}

func init() {
	device.Register("fake", device.Backend{Engine: func(d device.Device) device.Engine {
		if fake, ok := d.(*fakeCUDA); ok {
			return fake
		}
		return nil
	}})
}

// fakeCUDA has memory without bytes, and notes its calls.
type fakeCUDA struct {
	opened []string
	fails  error
	ended  int
}

type fakeMemory struct {
	device.Memory
	of   *fakeCUDA
	size int
	done func() error
}

func (f *fakeCUDA) String() string     { return "fake:0" }
func (f *fakeCUDA) Synchronize() error { return nil }
func (f *fakeCUDA) Alloc(n int) (device.Memory, error) {
	return &fakeMemory{of: f, size: n, done: func() error { return nil }}, nil
}

func (f *fakeCUDA) Open(_ context.Context, ordinal int, handle [64]byte, off, n int, event []byte, sender int,
	done func() error) (device.Memory, error) {
	f.opened = append(f.opened, fmt.Sprintf("%d bytes at %d of %q on %d behind %q of %d", n, off, handle[:1],
		ordinal, event[:min(len(event), 1)], sender))
	if f.fails != nil {
		return nil, f.fails
	}
	return &fakeMemory{of: f, size: n, done: done}, nil
}

// newFakeCUDA returns functions that open and share memory during a test.
func newFakeCUDA(t *testing.T) *fakeCUDA {
	f := &fakeCUDA{}
	device.Register("cuda", device.Backend{IPC: f})
	t.Cleanup(func() { device.Register("cuda", device.Backend{}) })
	return f
}

func (f *fakeCUDA) Share(device.Memory) (ordinal int, handle [64]byte, off int, event []byte,
	done func() error, err error) {
	return 5, [64]byte{'M'}, 4096, nil, func() error { f.ended++; return nil }, nil
}

func (m *fakeMemory) Device() device.Device                 { return m.of }
func (m *fakeMemory) Size() int                             { return m.size }
func (m *fakeMemory) Key() any                              { return m }
func (m *fakeMemory) Fill(off, n int, pattern []byte) error { return nil }
func (m *fakeMemory) End() error                            { return m.done() }

func TestCUDATensor_IsOpenedByIPC(t *testing.T) {
	name := counters(t, headerSize+8*counterSlots)
	slot := func() byte { return testutil.Value(os.ReadFile(shmDir + name))(t)[headerSize+8*3] }
	read := func(f *fakeCUDA, change func(python.Tuple)) (any, error) {
		b := testutil.Value(pickle.Marshal(cudaMessage(func(args python.Tuple) {
			args[11] = []byte(name)
			change(args)
		}), 4))(t)
		return (&importer{ctx: testContext(t), opts: Options{CUDA: true}}).unmarshal(b)
	}
	for counters, want := range map[string]int{"/torch_4242_1": 4242, "/torch_42": 42, "/torch_": 0, "": 0} {
		if got := (&CUDATensor{Counters: counters}).senderPID(); got != want {
			t.Errorf("the sender by %q is %d", counters, got)
		}
	}
	f := newFakeCUDA(t)
	x := testutil.Value(read(f, func(python.Tuple) {}))(t).(*tensor.Tensor)
	if fmt.Sprint(x.Shape(), x.Offset()) != "[2 3] 4" ||
		fmt.Sprint(f.opened) != fmt.Sprintf(`[96 bytes at 512 of "H" on 1 behind "E" of %d]`, os.Getpid()) ||
		slot() != 1 {
		t.Errorf("%v from %d, %v; the slot is %d", x.Shape(), x.Offset(), f.opened, slot())
	}
	if x.Close(); slot() != 0 {
		t.Errorf("closed, the slot is %d", slot())
	}
	empty := testutil.Value(read(f, func(args python.Tuple) {
		args[1].(*pickle.Object).Args = python.Tuple{python.Tuple{0, 3}}
		args[3], args[7], args[8], args[9], args[11], args[12], args[13], args[14] = 0, nil, 0, 0, nil, 0, nil, nil
	}))(t).(*tensor.Tensor)
	if empty.Numel() != 0 || f.opened[1] != `0 bytes at 0 of "\x00" on 1 behind "" of 0` {
		t.Errorf("an empty one: %v, %v", empty.Shape(), f.opened)
	}
	for _, learned := range []bool{true, false} {
		p := testutil.Value(read(f, func(args python.Tuple) {
			args[0], args[10] = parameterClass, learned
		}))(t).(*autograd.Param)
		if p.Frozen == learned {
			t.Errorf("a parameter that learns, %v, is frozen: %v", learned, p.Frozen)
		}
		p.T.Close()
	}
	check := func(what string, change func(python.Tuple), want error) {
		t.Helper()
		name = counters(t, headerSize+8*counterSlots)
		if v, err := read(f, change); !errors.Is(err, want) || slot() != 0 {
			t.Errorf("%s: %v, %v, and the slot is %d", what, v, err, slot())
		}
	}
	check("beyond its storage", func(args python.Tuple) { args[3] = 40 }, tensor.ErrLayout)
	check("an expandable segment",
		func(args python.Tuple) { args[7] = append([]byte("\x03e"), make([]byte, 64)...) }, ErrUnsupported)
	f.fails = os.ErrProcessDone
	check("whose sender has died", func(python.Tuple) {}, os.ErrProcessDone)
}

func TestCUDATensor_IsSharedByIPC(t *testing.T) {
	f := newFakeCUDA(t)
	send := func(shape ...int) *CUDATensor {
		x := testutil.Value(tensor.On(f).Zeros(tensor.Float32, shape...))(t)
		b := testutil.Value((&exporter{opts: Options{CUDA: true}}).marshal(x))(t)
		x.Close()
		return testutil.Value((&importer{ctx: testContext(t)}).unmarshal(b))(t).(*CUDATensor)
	}
	a, b, none := send(2, 3), send(2, 3), send(0, 3)
	if _, err := (&exporter{opts: Options{CUDA: true}}).marshal(a); !errors.Is(err, ErrUnsupported) {
		t.Errorf("sent on: %v", err)
	}
	if a.Device != 5 || len(a.Handle) != 64 || a.StorageBytes != 24 || a.StorageOffset != 4096 ||
		a.Event != nil || a.Counters != b.Counters || a.Slot+1 != b.Slot {
		t.Errorf("%+v and %+v", a, b)
	}
	if none.Handle != nil || none.StorageBytes != 0 || f.ended != 1 {
		t.Errorf("an empty one: %+v, %d ended", none, f.ended)
	}
	for want := 2; want >= 0; want-- {
		if out, err := CollectCUDA(); out != want || err != nil || f.ended != 3-want {
			t.Errorf("%d are out, %v, and %d have ended; want %d out", out, err, f.ended, want)
		}
		if _, err := os.Stat(shmDir + a.Counters); (err == nil) != (want > 0) {
			t.Errorf("%d are out; the counters: %v", want, err)
		}
		CloseAll([]any{b, a}[min(2-want, 1)])
	}
}

func TestOptions_CUDANeedsPackageCUDA(t *testing.T) {
	b := testutil.Value(pickle.Marshal(cudaMessage(nil), 4))(t)
	if v, err := (&importer{ctx: testContext(t), opts: Options{CUDA: true}}).unmarshal(b); !errors.Is(err,
		ErrUnsupported) ||
		!strings.Contains(err.Error(), "package cuda") {
		t.Errorf("%v, %v", v, err)
	}
}

// A message that is not sent gives back its promises.
func TestCUDATensor_IsGivenBackWhereNothingIsSent(t *testing.T) {
	f := newFakeCUDA(t)
	x := testutil.Value(tensor.On(f).Zeros(tensor.Float32, 2))(t)
	e := &exporter{opts: Options{CUDA: true}}
	if _, err := e.marshal(python.Tuple{x, make(chan int)}); err == nil {
		t.Fatal("a channel was sent")
	}
	e.withdrawMessage()
	if out, err := CollectCUDA(); out != 0 || err != nil || f.ended != 1 {
		t.Errorf("%d are out, %v, and %d have ended", out, err, f.ended)
	}
	x.Close()
}

// decodeCUDAForm lets PyTorch write and read the form. The function that would open a GPU is
// replaced there.
func cudaForm(t *testing.T, k *talk) {
	k.wantEval(
		"','.join(__import__('inspect').signature(torch.multiprocessing.reductions.rebuild_cuda_tensor).parameters)",
		"tensor_cls,tensor_size,tensor_stride,tensor_offset,storage_cls,dtype,storage_device,storage_handle,storage_size_bytes,"+
			"storage_offset_bytes,requires_grad,ref_counter_handle,ref_counter_offset,event_handle,event_sync_required")
	v := k.ask("cuda")
	c, ok := v.(*CUDATensor)
	if !ok || c.DType != tensor.BFloat16 || fmt.Sprint(c.Shape, c.Strides) != "[2 3] [3 1]" ||
		c.Device != 1 || c.Slot != 3 || c.Counters != "/torch_4242_1234567890" {
		t.Fatalf("%T %+v", v, v)
	}
	sent := &CUDATensor{DType: tensor.BFloat16, Shape: c.Shape, Strides: c.Strides, Device: 1,
		Handle: c.Handle, StorageBytes: 24, StorageOffset: 512,
		Counters: c.Counters, Slot: 3, Event: c.Event}
	want := "(<class 'torch.Tensor'>, torch.Size([2, 3]), (3, 1), 0, <class 'torch.storage.TypedStorage'>, " +
		"torch.bfloat16, 1, 64, 24, 512, False, " +
		"b'/torch_4242_1234567890', 3, 64, True)"
	if got := k.ask("repr", sent); got != want {
		t.Errorf("PyTorch reads %v, not %v", got, want)
	}
}
