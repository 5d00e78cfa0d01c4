package cuda_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/torch"
)

// pythonPeer takes a tensor from us, doubles it where it is, and sends one of its own; then it ends when we say so, since its memory goes with it.
const pythonPeer = `
import sys
from multiprocessing.connection import Client
import torch
import torch.multiprocessing.reductions
from multiprocessing.reduction import ForkingPickler

c = Client(sys.argv[1], family="AF_UNIX", authkey=sys.argv[2].encode())
x = c.recv()
assert x.is_cuda and x.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], x
x *= 2
torch.cuda.synchronize()
del x
c.send("doubled")
y = torch.arange(6, dtype=torch.float32, device="cuda").reshape(2, 3).t()
c.send_bytes(ForkingPickler.dumps(y))
c.recv()
assert y[0, 0].item() == 100, y
c.send("seen")
c.recv()
`

// aPython returns the interpreter that SHOAL_CUDA_PYTHON names, with which a program must succeed: that a module is there, and sees a GPU.
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

// TestPythonIsTheOtherProcess needs a GPU, and a Python with PyTorch.
func TestPythonIsTheOtherProcess(t *testing.T) {
	python := aPython(t, "PyTorch", "import sys, torch; sys.exit(not torch.cuda.is_available())")
	onDevices(t, 1, 64*mib)
	ctx := watched(t)
	l, err := torch.Listen("unix", t.TempDir()+"/socket", torchOptions)
	check(t, err)
	defer l.Close()
	script := filepath.Join(t.TempDir(), "peer.py")
	check(t, os.WriteFile(script, []byte(pythonPeer), 0o600))
	peer := exec.CommandContext(ctx, python, script, l.Addr(), string(torchOptions.AuthKey))
	peer.Stderr = os.Stderr
	check(t, peer.Start())
	c, err := l.Accept(ctx)
	check(t, err)
	defer c.Close()

	x, err := tensor.Arange(tensor.Float32, 0, 6, 1).View(2, 3).ToDevice(legacy(t))
	check(t, err)
	check(t, c.Send(ctx, x))
	said, err := c.Recv(ctx)
	check(t, err)
	if got := onHost(t, x); said != "doubled" || got[5] != 10 {
		t.Errorf("PyTorch %v: %v", said, got)
	}
	v, err := c.Recv(ctx)
	check(t, err)
	y := v.(*tensor.Tensor)
	if got := onHost(t, y); len(got) != 6 || got[0] != 0 || got[1] != 3 || got[5] != 5 {
		t.Errorf("from PyTorch: %v on %v", got, y.Device())
	}
	check(t, on(y).Write(0, tensor.Bytes(tensor.FromSlice([]float32{100}, 1))))
	check(t, y.Device().(*cuda.Device).Synchronize())
	check(t, c.Send(ctx, "look"))
	said, err = c.Recv(ctx)
	check(t, err)
	if said != "seen" {
		t.Errorf("PyTorch says %v", said)
	}
	check(t, errors.Join(x.Close(), y.Close()))
	eventually(t, func() string {
		out, err := torch.CollectCUDA()
		check(t, err)
		return []string{"it gave back what it had", "it has our tensor"}[out]
	}, "it gave back what it had")
	check(t, errors.Join(c.Send(ctx, "go"), peer.Wait()))
}

// The other two open our memory by its handle, and double what is there; then we open theirs. Each line of theirs is an answer to one of ours.
const (
	cupyPeer = `
import sys, cupy
handle, off = bytes.fromhex(sys.argv[1]), int(sys.argv[2])
run = cupy.cuda.runtime
p = run.ipcOpenMemHandle(handle)
a = cupy.ndarray((6,), cupy.float32, cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(p + off, 24, None), 0))
assert a.tolist() == [0, 1, 2, 3, 4, 5], a
a *= 2
cupy.cuda.Device().synchronize()
run.ipcCloseMemHandle(p)
cupy.cuda.set_allocator(None)
b = cupy.zeros(1 << 19, cupy.float32)
b[:6] = cupy.arange(6)
cupy.cuda.Device().synchronize()
print(run.ipcGetMemHandle(b.data.ptr).hex(), flush=True)
sys.stdin.readline()
assert b[0] == 100, b
`
	numbaPeer = `
import sys, numpy
from numba import cuda
handle, off = bytes.fromhex(sys.argv[1]), int(sys.argv[2])
@cuda.jit
def double(a):
    i = cuda.grid(1)
    if i < a.size:
        a[i] *= 2
with cuda.open_ipc_array(handle, shape=6, dtype=numpy.float32, offset=off) as a:
    assert a.copy_to_host().tolist() == [0, 1, 2, 3, 4, 5]
    double[1, 32](a)
    cuda.synchronize()
b = cuda.to_device(numpy.arange(1 << 19, dtype=numpy.float32))
cuda.synchronize()
h = b.get_ipc_handle()
print(bytes(getattr(h._ipc_handle.handle, "reserved", h._ipc_handle.handle)).hex(), flush=True)
sys.stdin.readline()
assert b.copy_to_host()[0] == 100
`
)

func TestCuPyIsTheOtherProcess(t *testing.T) {
	byHandle(t, aPython(t, "CuPy", "import sys, cupy; sys.exit(not cupy.cuda.is_available())"), cupyPeer)
}

func TestNumbaIsTheOtherProcess(t *testing.T) {
	byHandle(t, aPython(t, "Numba", "import sys; from numba import cuda; sys.exit(not cuda.is_available())"), numbaPeer)
}

func byHandle(t *testing.T, python, script string) {
	onDevices(t, 1, 64*mib)
	x, err := tensor.Arange(tensor.Float32, 0, 6, 1).ToDevice(legacy(t))
	check(t, err)
	check(t, x.Device().(*cuda.Device).Synchronize())
	h, off, err := on(x).Handle()
	check(t, err)
	peer := exec.CommandContext(watched(t), python, "-c", script, fmt.Sprintf("%x", h), fmt.Sprint(off))
	peer.Dir, peer.Stderr = t.TempDir(), os.Stderr
	in, err := peer.StdinPipe()
	check(t, err)
	out, err := peer.StdoutPipe()
	check(t, err)
	check(t, peer.Start())
	var text string
	if _, err := fmt.Fscan(out, &text); err != nil {
		t.Fatal(err, peer.Wait())
	}
	if got := onHost(t, x); got[0] != 0 || got[5] != 10 {
		t.Errorf("it has made %v", got)
	}
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(cuda.Handle{}) {
		t.Fatalf("a handle %q: %v", text, err)
	}
	m, err := x.Device().(*cuda.Device).Open(cuda.Handle(b), 0, 24)
	check(t, err)
	theirs, err := tensor.FromDeviceMemory(m, tensor.Float32, []int{6}, []int{1}, 0)
	check(t, err)
	if got := onHost(t, theirs); got[1] != 1 || got[5] != 5 {
		t.Errorf("theirs is %v", got)
	}
	check(t, m.Write(0, tensor.Bytes(tensor.FromSlice([]float32{100}, 1))))
	check(t, theirs.Close()) // before its owner ends
	_, err = fmt.Fprintln(in)
	check(t, errors.Join(err, in.Close(), peer.Wait(), x.Close()))
}
