package torch

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// TestRegion_AKilledPythonLeavesNothing kills PyTorch while Go has its tensors, and closes all
// tensors after that.
func TestRegion_AKilledPythonLeavesNothing(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		for _, theirs := range []string{"fetched", "file_descriptor", "file_system"} {
			cell(t, theirs, func(t *testing.T) {
				names := torchFiles(t)
				k := converse(t, py, Options{}, theirs)
				files, maps := openFiles(t), mappings(t)
				v := k.ask("make", "list", "float32")
				mine := pattern(k, tensor.Float32, 6)
				k.ask("take", mine)
				if err := k.Send(k.ctx, python.Tuple{"take", mine}); err != nil { // perhaps never received
					t.Fatal(err)
				}
				k.p.Signal(syscall.SIGKILL)
				k.p.Wait(k.ctx)
				for _, x := range append(flat(v), mine) {
					x.Fill(3)
				}
				wantAll(t, append(flat(v), mine), 3, "what was written after the death of PyTorch")
				for err := error(nil); err == nil; {
					_, err = k.Recv(k.ctx) // ends: the connection is closed
				}
				CloseAll(v)
				mine.Close()
				k.Close()
				if err := Trim(); err != nil {
					t.Fatal(err)
				}
				// The sharer and the runtime work in the background. Their files are closed when
				// they have ended.
				testutil.Eventually(t, func() bool { return openFiles(t) <= files },
					"waited in vain for no more than %d descriptors", files)
				testutil.Eventually(t, func() bool { return mappings(t) <= maps },
					"waited in vain for no more than %d mappings", maps)
				testutil.Eventually(t, func() bool { return len(torchFiles(t)) <= len(names) },
					"waited in vain for PyTorch's files in /dev/shm to go")
			})
		}
	})
}

// TestRegion_AKilledGoLeavesNothing kills a Go process while PyTorch has its tensors. The tensors
// stay, and nothing else does.
func TestRegion_AKilledGoLeavesNothing(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		for _, s := range []Strategy{Proc, FileDescriptor, FileSystem} {
			cell(t, string(s), func(t *testing.T) {
				ctx := testContext(t)
				addr := filepath.Join(t.TempDir(), "socket")
				l, err := Listen("unix", addr, Options{AuthKey: testKey})
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				py3 := exec.CommandContext(ctx, py.path, "-c",
					"import peer; peer.connect('unix', "+fmt.Sprintf("%q", addr)+", b'"+string(testKey)+"')")
				py3.Dir, py3.Stderr, py3.Env = "testdata", os.Stderr, pythonEnv()
				if err := py3.Start(); err != nil {
					t.Fatal(err)
				}
				c, err := l.Accept(ctx)
				if err != nil {
					t.Fatal(err)
				}
				k := &talk{t: t, ctx: ctx, Conn: c}
				victim(t, k, addr, s)
				if got := k.ask("read"); !sameNumbers(got, [][]float64{{5, 5, 5}}) {
					t.Errorf("after the death of Go PyTorch has %v", got)
				}
				k.ask("fill", 6)
				if got := k.ask("echo"); !sameNumbers([]any{anyFloats(got)}, [][]float64{{6, 6, 6}}) {
					t.Errorf("PyTorch sent %v on", got)
				} else {
					CloseAll(got)
				}
				k.Close()
				if err := py3.Wait(); err != nil {
					t.Error(err)
				}
				testutil.Eventually(t, func() bool { sweepShared(); return len(deadFiles(t)) == 0 },
					"waited in vain for the dead process's files to go")
			})
		}
	})
}

func anyFloats(v any) (list []any) {
	for _, f := range elements(v.(*tensor.Tensor)) {
		list = append(list, f)
	}
	return list
}

// victim lets another Go process send a tensor to k's PyTorch, and kills it.
func victim(t *testing.T, k *talk, addr string, s Strategy) {
	t.Helper()
	reader, theirs, err := sys.Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	cmd := exec.CommandContext(k.ctx, os.Args[0], "-test.run", "^TestRegion_Victim$")
	cmd.Env = append(os.Environ(), "SHOAL_TORCH_VICTIM="+string(s))
	cmd.ExtraFiles, cmd.Stderr = []*os.File{theirs}, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	// The victim writes its message to us, and we pass it on: PyTorch has one connection.
	relay := newConn(reader, Options{})
	raw, err := relay.RecvBytes(k.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.SendBytes(k.ctx, raw); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Recv(k.ctx); err != nil {
		t.Fatal(err)
	}
	cmd.Process.Kill()
	cmd.Wait()
}

// TestRegion_Victim is the process of TestRegion_AKilledGoLeavesNothing.
func TestRegion_Victim(t *testing.T) {
	s := os.Getenv("SHOAL_TORCH_VICTIM")
	if s == "" {
		t.Skip("only a part of TestRegion_AKilledGoLeavesNothing")
	}
	opts := Options{Strategy: Proc, AuthKey: testKey}
	for _, known := range []Strategy{FileDescriptor, FileSystem} {
		if s == string(known) {
			opts.Strategy = known
		}
	}
	c, err := connOf(os.NewFile(3, "relay"), true, opts)
	if err != nil {
		t.Fatal(err)
	}
	x, err := opts.Empty(tensor.Float32, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Send(context.Background(), python.Tuple{"take", x.Fill(5)}); err != nil {
		t.Fatal(err)
	}
	c.Recv(context.Background()) // until it is killed
}

// torchFiles are the names of PyTorch's shared memory.
func torchFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(shmDir + "/torch_*")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// deadFiles are the names of Shoal's processes that have ended.
func deadFiles(t *testing.T) (dead []string) {
	t.Helper()
	files, err := filepath.Glob(shmDir + "/" + namePrefix + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if o, ok := parseOwner(filepath.Base(f)); ok && o.hasEnded() {
			dead = append(dead, f)
		}
	}
	return dead
}

// mappings counts the mappings of shared memory in this process.
func mappings(t *testing.T) (n int) {
	t.Helper()
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if strings.Contains(s.Text(), "torch") {
			n++
		}
	}
	return n
}
