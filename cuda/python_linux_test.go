package cuda_test

import (
	"errors"
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

// TestPythonIsTheOtherProcess needs a GPU, and a Python with PyTorch, which SHOAL_CUDA_PYTHON names.
func TestPythonIsTheOtherProcess(t *testing.T) {
	python := os.Getenv("SHOAL_CUDA_PYTHON")
	if python == "" || !*real {
		t.Skip("SHOAL_CUDA_PYTHON names no interpreter, or there is no GPU")
	}
	look := exec.CommandContext(t.Context(), python, "-c", "import sys, torch; sys.exit(not torch.cuda.is_available())")
	look.Dir = t.TempDir() // not one with a folder called torch
	if out, err := look.CombinedOutput(); err != nil {
		t.Skipf("%s has no PyTorch that sees a GPU: %v\n%s", python, err, out)
	}
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
