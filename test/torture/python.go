//go:build linux

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/torch"
)

//go:embed peer.py
var peerProgram []byte

// interpreter returns a Python interpreter with PyTorch: the first of SHOAL_TORCH_PYTHONS, the one
// installed by make interop, or python3. It returns "" if none has PyTorch.
func interpreter() string {
	cache, _ := os.UserCacheDir()
	for _, p := range append(filepath.SplitList(os.Getenv("SHOAL_TORCH_PYTHONS")),
		filepath.Join(cache, "shoal/interop/torch/bin/python"), "python3") {
		if exec.Command(p, "-c", "import torch").Run() == nil {
			return p
		}
	}
	return ""
}

var errNoPyTorch = errors.New("no Python has PyTorch: make interop installs one")

// pythonStorm kills PyTorch processes that exchange tensors, and reports violations to s. It
// returns errNoPyTorch if there is no interpreter.
func pythonStorm(s *storm) error {
	py := torch.Python{Path: interpreter(), Dir: s.dir, Stderr: io.Discard}
	if py.Path == "" {
		return errNoPyTorch
	}
	if err := os.WriteFile(filepath.Join(s.dir, "torture_peer.py"), peerProgram, 0o600); err != nil {
		return err
	}
	temp := filepath.Join(s.dir, "tmp") // a directory without files of other Python processes
	if err := errors.Join(os.MkdirAll(temp, 0o700), os.Setenv("TMPDIR", temp)); err != nil {
		return err
	}
	left := func() int { files, _ := os.ReadDir(temp); return len(files) }
	var pair sync.WaitGroup
	for i := range 2 {
		pair.Go(func() {
			for n := i; n < max(s.deaths, 1); n += 2 {
				if err := pythonLife(s, py, uint64(n)); err != nil {
					s.wrong(&s.seen.Crashes, 1, "%v", err)
				}
			}
		})
	}
	pair.Wait()
	s.eventually(func() bool { return left() == 0 })
	if n := left(); n > 0 {
		s.wrong(&s.seen.Files, n, "%d directories of Python's are left", n)
	}
	return torch.Trim()
}

// pythonLife runs one Python process from its start to its death, which it causes in a storm
// with deaths. It reports violations to s.
func pythonLife(s *storm, py torch.Python, number uint64) error {
	p, err := py.Spawn(s.ctx, "torture_peer:run")
	if err != nil {
		return err
	}
	defer p.Close()
	pen, err := openPen(s.path)
	if err != nil {
		return err
	}
	ctx, cancel := s.timeoutContext()
	defer cancel()
	born := s.deaths > 0 && s.intn(4) == 0 // kill it during its start
	after := time.Duration(s.intn(200)) * time.Millisecond
	if born {
		time.AfterFunc(after, func() { s.kill(p) })
	}
	hunted, came := false, make(map[int64]bool)
	for id := int64(number) << 32; ; id++ {
		err := exchange(ctx, p.Conn, id, came)
		if ctx.Err() != nil {
			s.wrong(&s.seen.Hangs, 1, "a connection of a killed Python does not end: %v", err)
			return nil
		}
		if err != nil && !s.isDead(p.PID()) {
			return fmt.Errorf("python %d: %w", number, err)
		}
		if err != nil {
			break
		}
		if s.deaths == 0 && id&0xff == 20 {
			break
		}
		if id&0xff != 0 {
			continue
		}
		pen.enter(ends, p.PID(), uint64(id))
		if s.deaths > 0 {
			s.stop(p)
		}
		if s.deaths > 0 && !born && !hunted {
			hunted = true
			time.AfterFunc(after, func() { s.kill(p) })
		}
	}
	if s.deaths == 0 {
		return nil // Close kills it
	}
	err = p.Wait(ctx)
	if ctx.Err() != nil {
		s.wrong(&s.seen.Hangs, 1, "a killed Python does not end")
		return nil
	}
	if _, ok := errors.AsType[*torch.ProcessError](err); !ok {
		s.wrong(&s.seen.Crashes, 1, "a killed Python ends with %v", err)
	}
	return nil
}

// exchange sends a tensor with an id and returns an error unless it comes back, once, with its
// elements doubled. It adds the id to came. Other errors are from the connection.
func exchange(ctx context.Context, c *torch.Conn, id int64, came map[int64]bool) error {
	t, err := torch.Zeros(tensor.Int64, 1+int(id%500))
	if err != nil {
		return err
	}
	defer t.Close()
	if err := c.Send(ctx, python.Tuple{id, t.Fill(float64(id & 0xffff))}); err != nil {
		return err
	}
	v, err := torch.As[python.Tuple](c.Recv(ctx))
	if err != nil {
		return err
	}
	defer torch.CloseAll(v)
	back, ok := v[0].(int64)
	got, ok2 := v[1].(*tensor.Tensor)
	if !ok || !ok2 || back != id || came[id] {
		return fmt.Errorf("%d comes back as %v", id, v)
	}
	came[id] = true
	for _, n := range tensor.Data[int64](got) {
		if n != 2*(id&0xffff) {
			return fmt.Errorf("%d has %d in it", id, n)
		}
	}
	return nil
}
