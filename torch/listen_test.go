package torch

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
)

// TestListener_AcceptEndsWithItsContext cancels one of two waiting calls.
func TestListener_AcceptEndsWithItsContext(t *testing.T) {
	for network, addr := range map[string]string{"unix": "", "tcp": "127.0.0.1:0"} {
		l := testutil.Value(Listen(network, addr, Options{AuthKey: testKey}))(t)
		reason := errors.New("no more guests")
		ctx, cancel := context.WithCancelCause(testContext(t))
		ended, other := make(chan error, 1), make(chan error, 1)
		go func() { _, err := l.Accept(ctx); ended <- err }()
		go func() {
			c, err := l.Accept(testContext(t))
			if err == nil {
				c.Close()
			}
			other <- err
		}()
		cancel(reason)
		if err := <-ended; err != reason {
			t.Errorf("%s: %v", network, err)
		}
		c := testutil.Value(Dial(testContext(t), network, l.Addr(), Options{AuthKey: testKey}))(t)
		if err := <-other; err != nil {
			t.Errorf("%s: the one that waits on: %v", network, err)
		}
		c.Close()
		if err := errors.Join(l.Close(), l.Close()); err != nil {
			t.Error(err)
		}
		if _, err := l.Accept(testContext(t)); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: after Close: %v", network, err)
		}
	}
}

// TestListener_AStrangerKeepsNobodyWaiting lets a client say nothing before another client
// authenticates itself.
func TestListener_AStrangerKeepsNobodyWaiting(t *testing.T) {
	l := testutil.Value(Listen("unix", "", Options{AuthKey: testKey}))(t)
	defer l.Close()
	silent := testutil.Value(net.Dial("unix", l.Addr()))(t)
	defer silent.Close()
	ctx, cancel := context.WithTimeout(testContext(t), patience/2)
	defer cancel()
	go func() {
		if c, err := Dial(ctx, "unix", l.Addr(), Options{AuthKey: testKey}); err == nil {
			c.Close()
		}
	}()
	c, err := l.Accept(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// TestListener_ManyStrangersKeepNobodyWaiting lets more clients than there may be say nothing.
func TestListener_ManyStrangersKeepNobodyWaiting(t *testing.T) {
	for network, addr := range map[string]string{"unix": "", "tcp": "127.0.0.1:0"} {
		l := testutil.Value(Listen(network, addr, Options{AuthKey: testKey}))(t)
		defer l.Close()
		before := runtime.NumGoroutine()
		for range 2 * sys.MostStrangers {
			silent := testutil.Value(net.Dial(network, l.Addr()))(t)
			defer silent.Close()
		}
		ctx, cancel := context.WithTimeout(testContext(t), patience/2)
		defer cancel()
		go func() {
			if c, err := Dial(ctx, network, l.Addr(), Options{AuthKey: testKey}); err == nil {
				c.Close()
			}
		}()
		c, err := l.Accept(ctx)
		if err != nil {
			t.Fatalf("%s: %v", network, err)
		}
		c.Close()
		if n := runtime.NumGoroutine() - before; n > sys.MostStrangers+sys.MostStrangers/2 {
			t.Errorf("%s: %d goroutines for those that say nothing", network, n)
		}
	}
}

// TestListener_ManyMayComeAtOnce has all processes of a job come before one is accepted.
func TestListener_ManyMayComeAtOnce(t *testing.T) {
	l := testutil.Value(Listen("unix", "", Options{AuthKey: testKey}))(t)
	defer l.Close()
	const many = 3 * maxWaiting
	var wg sync.WaitGroup
	for range many {
		wg.Go(func() {
			c, err := Dial(testContext(t), "unix", l.Addr(), Options{AuthKey: testKey})
			if err != nil {
				t.Error(err)
				return
			}
			c.Close()
		})
	}
	for range many {
		c, err := l.Accept(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	wg.Wait()
}

// TestListen_TakesOverADeadSocket starts several programs at once at the path of a dead program's
// socket: one of them listens.
func TestListen_TakesOverADeadSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	dead := testutil.Value(net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}))(t)
	dead.SetUnlinkOnClose(false)
	dead.Close()
	var wg sync.WaitGroup
	listening := make(chan *Listener, 8)
	for range cap(listening) {
		wg.Go(func() {
			l, err := Listen("unix", path, Options{})
			switch {
			case err == nil:
				listening <- l
			case !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "another program listens"):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(listening); n != 1 {
		t.Fatalf("%d programs listen at %s", n, path)
	}
	l := <-listening
	if c, err := Dial(testContext(t), "unix", path, Options{}); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
	l.Close()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Close: %v", err)
	}
}

// TestListen_Refuses listens at addresses in use. The process that listens there gets no message,
// and files that are no sockets stay.
func TestListen_Refuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	living := testutil.Value(net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}))(t)
	defer living.Close()
	if _, err := Listen("unix", path, Options{}); !errors.Is(err, syscall.EADDRINUSE) ||
		!strings.Contains(err.Error(), "another program listens") {
		t.Errorf("a living socket: %v", err)
	}
	heard := make(chan byte, 1)
	go func() {
		if c, err := living.Accept(); err == nil {
			b := make([]byte, 1)
			c.Read(b)
			heard <- b[0]
		}
	}()
	c := testutil.Value(net.Dial("unix", path))(t)
	c.Write([]byte("x"))
	if b := <-heard; b != 'x' {
		t.Error("the living listener heard of the attempt")
	}
	c.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen("unix", file, Options{}); !errors.Is(err, syscall.EADDRINUSE) ||
		!strings.Contains(err.Error(), "not a socket") {
		t.Errorf("a file: %v", err)
	}
	if b := testutil.Value(os.ReadFile(file))(t); string(b) != "x" {
		t.Errorf("the file is %q now", b)
	}
}
