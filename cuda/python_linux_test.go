package cuda_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
	"github.com/shoal-mp/shoal/torch"
)

// pythonPeer takes tensors from us, doubles one where it is, and sends some of its own; then it
// ends when we say so, since its memory goes with it. Nothing here and in its fellows needs a
// kernel, since a stand-in has none, and not everybody has a compiler for them.
const pythonPeer = `
import sys
from multiprocessing.connection import Client
import torch
import torch.multiprocessing.reductions
from multiprocessing.reduction import ForkingPickler

c = Client(sys.argv[1], family="AF_UNIX", authkey=sys.argv[2].encode())
x, row, p, none = c.recv()
assert x.is_cuda and x.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], x
assert row.data_ptr() == x.data_ptr() + 12 and row.tolist() == [3.0, 4.0, 5.0], row
assert type(p) is torch.nn.Parameter and p.requires_grad and p.dtype == torch.bfloat16 and p.tolist() == [1.0, 1.0], p
assert none.is_cuda and none.shape == (0, 3), none
x.copy_(x.cpu() * 2)
torch.cuda.synchronize()
del x, row, p, none
c.send("doubled")
before = torch.ones(100).to("cuda") # so that the next one begins somewhere in the driver's allocation
y = torch.arange(6, dtype=torch.float32).reshape(2, 3).to("cuda").t()
w = torch.nn.Parameter(torch.ones(2, dtype=torch.float64).to("cuda"), requires_grad=False)
assert y.data_ptr() > before.data_ptr()
c.send_bytes(ForkingPickler.dumps((y, y[1], w, torch.empty(0, 3, device="cuda"))))
c.recv()
assert y[0, 0].cpu() == 100, y
c.send("seen")
c.recv()
del before, y, w
torch.cuda.ipc_collect()
assert torch.cuda.memory_allocated() == 0, torch.cuda.memory_allocated() # everything came back
`

// aPython returns the interpreter that SHOAL_CUDA_PYTHON names, with which a program must succeed:
// that a module is there, and sees a GPU.
func aPython(t *testing.T, module, program string) (python string) {
	t.Helper()
	python = os.Getenv("SHOAL_CUDA_PYTHON")
	if python == "" || !*real {
		t.Skip("SHOAL_CUDA_PYTHON names no interpreter, or there is no GPU")
	}
	look := exec.CommandContext(t.Context(), python, "-c", program)
	look.Dir = t.TempDir() // not one with a folder called torch
	if out, err := look.CombinedOutput(); err != nil {
		t.Skipf("%s has no %s that sees a GPU: %v\n%s", python, module, err, out)
	}
	return python
}

// TestLegacy_PyTorchIsTheOtherProcess needs a GPU, and a Python with PyTorch.
func TestLegacy_PyTorchIsTheOtherProcess(t *testing.T) {
	interpreter := aPython(t, "PyTorch", "import torch; torch.cuda.init()")
	onDevices(t, 1, 64*mib)
	ctx := patient(t)
	l, err := torch.Listen("unix", t.TempDir()+"/socket", torchOptions)
	testutil.NoError(t, err)
	defer l.Close()
	script := filepath.Join(t.TempDir(), "peer.py")
	testutil.NoError(t, os.WriteFile(script, []byte(pythonPeer), 0o600))
	peer := exec.CommandContext(ctx, interpreter, script, l.Addr(), string(torchOptions.AuthKey))
	peer.Stderr = os.Stderr
	testutil.NoError(t, peer.Start())
	c, err := l.Accept(ctx)
	testutil.NoError(t, err)
	defer c.Close()

	x, err := tensor.Arange(tensor.Float32, 0, 6, 1).View(2, 3).ToDevice(legacy(t))
	testutil.NoError(t, err)
	row := x.Select(0, 1)
	w, err := tensor.On(legacy(t)).Ones(tensor.BFloat16, 2)
	testutil.NoError(t, err)
	none, err := tensor.On(legacy(t)).Zeros(tensor.Float32, 0, 3)
	testutil.NoError(t, err)
	testutil.NoError(t, c.Send(ctx, python.Tuple{x, row, &autograd.Param{T: w}, none}))
	said, err := c.Recv(ctx)
	testutil.NoError(t, err)
	if got := onHost(t, x); said != "doubled" || got[5] != 10 {
		t.Errorf("PyTorch %v: %v", said, got)
	}
	v, err := c.Recv(ctx)
	testutil.NoError(t, err)
	all := v.(python.Tuple)
	y, column, learned, empty := all[0].(*tensor.Tensor), all[1].(*tensor.Tensor), all[2].(*autograd.Param),
		all[3].(*tensor.Tensor)
	if got := onHost(t, y); len(got) != 6 || got[0] != 0 || got[1] != 3 || got[5] != 5 {
		t.Errorf("from PyTorch: %v on %v", got, y.Device())
	}
	if got := onHost(t, column); !slices.Equal(got, []float32{1, 4}) || on(column) != on(y) {
		t.Errorf("the view: %v of memory %v, not %v", got, on(column), on(y))
	}
	if h, err := learned.T.CPU(); err != nil || !learned.Frozen ||
		!slices.Equal(tensor.Data[float64](h), []float64{1, 1}) {
		t.Errorf("the parameter: %v of %v, %v", learned.T, learned.T.DType(), err)
	}
	if !slices.Equal(empty.Shape(), []int{0, 3}) || empty.Device() != y.Device() {
		t.Errorf("the empty one: %v on %v", empty.Shape(), empty.Device())
	}
	testutil.NoError(t, on(y).Write(0, tensor.Bytes(tensor.FromSlice([]float32{100}, 1))))
	testutil.NoError(t, y.Device().(*cuda.Device).Synchronize())
	testutil.NoError(t, c.Send(ctx, "look"))
	said, err = c.Recv(ctx)
	testutil.NoError(t, err)
	if said != "seen" {
		t.Errorf("PyTorch says %v", said)
	}
	torch.CloseAll(all)
	testutil.NoError(t, errors.Join(x.Close(), row.Close(), w.Close(), none.Close()))
	eventually(t, func() string {
		out, err := torch.CollectCUDA()
		testutil.NoError(t, err)
		return fmt.Sprintf("it has %d of our tensors", out)
	}, "it has 0 of our tensors")
	if left, err := filepath.Glob(fmt.Sprintf("/dev/shm/shoal_%d_*", os.Getpid())); len(left) > 0 {
		t.Errorf("counters that nobody needs: %v, %v", left, err)
	}
	testutil.NoError(t, errors.Join(c.Send(ctx, "go"), peer.Wait()))
}

// The other two open our memory by its handle, and double what is there; then we open theirs. Each
// line of theirs is an answer to one of ours.
const (
	cupyPeer = `
import sys, cupy, numpy
handle, off = bytes.fromhex(sys.argv[1]), int(sys.argv[2])
run = cupy.cuda.runtime
p = run.ipcOpenMemHandle(handle)
a = cupy.ndarray((6,), cupy.float32, cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(p + off, 24, None), 0))
assert a.tolist() == [0, 1, 2, 3, 4, 5], a
a.set(a.get() * 2)
cupy.cuda.Device().synchronize()
run.ipcCloseMemHandle(p)
cupy.cuda.set_allocator(None) # what its pool has begins anywhere in an allocation
b = cupy.asarray(numpy.arange(1 << 19, dtype=numpy.float32))
cupy.cuda.Device().synchronize()
print(run.ipcGetMemHandle(b.data.ptr).hex(), 0, flush=True)
sys.stdin.readline()
assert b.get()[0] == 100, b
`
	numbaPeer = `
import ctypes, sys, numpy
from numba import cuda
from numba.cuda.cudadrv.driver import IpcHandle, binding
# What cuda.open_ipc_array does; that itself fails with the cuda-bindings from 13.4 on, where a handle has no attribute "reserved".
h = binding.CUipcMemHandle()
ctypes.memmove(int(h.getPtr()), bytes.fromhex(sys.argv[1]), 64)
opened = IpcHandle(None, h, 24, offset=int(sys.argv[2]))
a = opened.open_array(cuda.current_context(), 6, numpy.dtype(numpy.float32))
assert a.copy_to_host().tolist() == [0, 1, 2, 3, 4, 5]
a.copy_to_device(a.copy_to_host() * 2)
cuda.synchronize()
opened.close()
b = cuda.to_device(numpy.arange(1 << 19, dtype=numpy.float32))
cuda.synchronize()
mine = b.get_ipc_handle()
print(ctypes.string_at(int(mine._ipc_handle.handle.getPtr()), 64).hex(), mine._ipc_handle.offset, flush=True)
sys.stdin.readline()
assert b.copy_to_host()[0] == 100
`
)

func TestLegacy_CuPyIsTheOtherProcess(t *testing.T) {
	byHandle(t, aPython(t, "CuPy", "import sys, cupy; sys.exit(not cupy.cuda.is_available())"), cupyPeer)
}

func TestLegacy_NumbaIsTheOtherProcess(t *testing.T) {
	// is_available also asks for a compiler
	byHandle(t, aPython(t, "Numba", "from numba import cuda; cuda.current_context()"), numbaPeer)
}

func byHandle(t *testing.T, python, script string) {
	onDevices(t, 1, 64*mib)
	x, err := tensor.Arange(tensor.Float32, 0, 6, 1).ToDevice(legacy(t))
	testutil.NoError(t, err)
	testutil.NoError(t, x.Device().(*cuda.Device).Synchronize())
	h, off, err := cuda.HandleOf(x)
	testutil.NoError(t, err)
	peer := exec.CommandContext(patient(t), python, "-c", script, fmt.Sprintf("%x", h), fmt.Sprint(off))
	peer.Dir, peer.Stderr = t.TempDir(), os.Stderr
	in, err := peer.StdinPipe()
	testutil.NoError(t, err)
	out, err := peer.StdoutPipe()
	testutil.NoError(t, err)
	testutil.NoError(t, peer.Start())
	var text string
	if _, err := fmt.Fscan(out, &text, &off); err != nil {
		t.Fatal(err, peer.Wait())
	}
	if got := onHost(t, x); got[0] != 0 || got[5] != 10 {
		t.Errorf("it has made %v", got)
	}
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != 64 {
		t.Fatalf("a handle %q: %v", text, err)
	}
	all, err := x.Device().(*cuda.Device).Open(t.Context(), [64]byte(b), off, 24, nil)
	testutil.NoError(t, err)
	theirs, err := all.Storage().View(tensor.Float32, []int{6}, nil, 0)
	testutil.NoError(t, errors.Join(err, all.Close()))
	if got := onHost(t, theirs); got[1] != 1 || got[5] != 5 {
		t.Errorf("theirs is %v", got)
	}
	tensor.SetAt[float32](theirs, 100, 0)
	testutil.NoError(t, theirs.Close()) // before its owner ends
	_, err = fmt.Fprintln(in)
	testutil.NoError(t, errors.Join(err, in.Close(), peer.Wait(), x.Close()))
}
