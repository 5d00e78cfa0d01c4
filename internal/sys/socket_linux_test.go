package sys_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
	"golang.org/x/sys/unix"
)

// standingListener is one at an abstract address.
func standingListener(t *testing.T) *sys.Listener {
	t.Helper()
	l := testutil.Value(sys.Listen("@" + bellName(t, 0)))(t)
	t.Cleanup(func() { l.Close() })
	return l
}

func TestConnectionCarriesBothWays(t *testing.T) {
	for name, addr := range map[string]string{"abstract": "@" + bellName(t, 0),
		"path": filepath.Join(t.TempDir(), "socket")} {
		t.Run(name, func(t *testing.T) {
			l := testutil.Value(sys.Listen(addr))(t)
			defer l.Close()
			if l.Addr() != addr {
				t.Errorf("address %q, want %q", l.Addr(), addr)
			}
			echoed := make(chan error, 1)
			go func() { echoed <- echo(l) }()
			c := testutil.Value(sys.Dial(t.Context(), l.Addr()))(t)
			defer c.Close()
			long := strings.Repeat("0123456789abcdef", 1<<16) // more than the kernel buffers
			go func() { c.Write([]byte(long)); c.CloseWrite() }()
			within(t, "the echo", func() {
				b, err := io.ReadAll(c)
				if err != nil || string(b) != long {
					t.Errorf("%d bytes came back, %v", len(b), err)
				}
				testutil.NoError(t, <-echoed)
			})
		})
	}
}

// echo says to one client what it says.
func echo(l *sys.Listener) error {
	c, err := l.Accept()
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = io.Copy(c, c)
	return err
}

func TestAddressIsTakenUntilClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	for _, addr := range []string{"@" + bellName(t, 0), path} {
		l := testutil.Value(sys.Listen(addr))(t)
		if _, err := sys.Listen(addr); !errors.Is(err, unix.EADDRINUSE) {
			t.Errorf("%s: second listener: %v, want EADDRINUSE", addr, err)
		}
		testutil.NoError(t, l.Close())
		again := testutil.Value(sys.Listen(addr))(t)
		l.Close() // must not remove what is another's now
		testutil.Value(sys.Dial(t.Context(), addr))(t).Close()
		testutil.NoError(t, again.Close())
		_, err := sys.Dial(t.Context(), addr)
		if !errors.Is(err, unix.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: connected to a closed listener: %v", addr, err)
		}
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the path of a closed listener: %v", err)
	}
}

func TestNoAddressIsRefused(t *testing.T) {
	for _, addr := range []string{"", "@", "@" + strings.Repeat("x", 108)} {
		if _, err := sys.Listen(addr); !errors.Is(err, unix.EINVAL) {
			t.Errorf("listen at %q: %v, want EINVAL", addr, err)
		}
		if _, err := sys.Dial(t.Context(), addr); !errors.Is(err, unix.EINVAL) {
			t.Errorf("connect to %q: %v, want EINVAL", addr, err)
		}
	}
}

func TestCloseEndsAcceptAndRead(t *testing.T) {
	l := standingListener(t)
	c := testutil.Value(sys.Dial(t.Context(), l.Addr()))(t)
	testutil.Value(l.Accept())(t).SetDeadline(time.Time{}) // stays open: the read below has to wait
	ended := make(chan error, 2)
	go func() { _, err := l.Accept(); ended <- err }()
	go func() { _, err := c.Read(make([]byte, 1)); ended <- err }()
	testutil.NoError(t, l.Close())
	testutil.NoError(t, c.Close())
	within(t, "accept and read to end", func() {
		for range 2 {
			if err := <-ended; !errors.Is(err, os.ErrClosed) {
				t.Errorf("%v, want os.ErrClosed", err)
			}
		}
	})
}

func TestDeadlineEndsEveryWait(t *testing.T) {
	a, _ := connected(t)
	testutil.NoError(t, a.SetDeadline(time.Unix(1, 0)))
	_, read := a.Read(make([]byte, 1))
	_, _, received := sys.RecvFiles(a, make([]byte, 1), 1)
	sent := sys.SendFiles(a, make([]byte, 1))
	for _, err := range []error{read, received, sent} {
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%v, want os.ErrDeadlineExceeded", err)
		}
	}
}

func TestRandomBytesDiffer(t *testing.T) {
	var a, b [256]byte
	testutil.NoError(t, errors.Join(sys.Random(a[:]), sys.Random(b[:])))
	if a == b {
		t.Error("the same 256 bytes twice")
	}
	defer func() {
		if recover() == nil {
			t.Error("257 bytes were given")
		}
	}()
	sys.Random(make([]byte, 257))
}

// fill connects until there is no room any more, and returns how many connections it has.
func fill(t *testing.T, addr string) (n int) {
	t.Helper()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for ; ; n++ {
		c, err := sys.Dial(over, addr)
		if errors.Is(err, unix.EAGAIN) && errors.Is(err, context.Canceled) {
			return n
		}
		testutil.NoError(t, err)
		t.Cleanup(func() { c.Close() })
	}
}

func TestDial_WaitsWhereTooManyHaveCalled(t *testing.T) {
	addr := filepath.Join(t.TempDir(), "narrow")
	l := testutil.Value(sys.Listen(addr))(t)
	defer l.Close()
	n := fill(t, addr)
	brief, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if _, err := sys.Dial(brief, addr); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, unix.EAGAIN) {
		t.Errorf("without room: %v", err)
	}
	var accepted sync.WaitGroup
	accepted.Go(func() {
		time.Sleep(5 * time.Millisecond)
		for range n + 1 {
			testutil.Value(l.Accept())(t).Close()
		}
	})
	within(t, "the connection", func() { testutil.Value(sys.Dial(t.Context(), addr))(t).Close() })
	within(t, "all that have called", accepted.Wait)
	testutil.NoError(t, l.Close())
	if _, err := sys.Dial(t.Context(), addr); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after the end: %v", err)
	}
}

// Somebody who may read a directory has its lock, and keeps it. A socket that a dead process has
// left there is taken over once the lock is free.
func TestListenAnew_WaitsForNoLockForEver(t *testing.T) {
	before := sys.SetTakeoverTime(50 * time.Millisecond)
	defer func() { sys.SetTakeoverTime(before) }()
	path := filepath.Join(t.TempDir(), "socket")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	testutil.NoError(t, err)
	dead.SetUnlinkOnClose(false)
	testutil.NoError(t, dead.Close())
	dir, err := os.Open(filepath.Dir(path))
	testutil.NoError(t, err)
	testutil.NoError(t, sys.LockFile(dir))
	ended := make(chan error, 1)
	go func() {
		l, err := sys.ListenAnew(path)
		if err == nil {
			l.Close()
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, unix.EADDRINUSE) || !errors.Is(err, unix.EWOULDBLOCK) {
			t.Errorf("%v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it waits for the lock")
	}
	testutil.NoError(t, dir.Close())
	l, err := sys.ListenAnew(path)
	testutil.NoError(t, err)
	testutil.NoError(t, l.Close())
}
