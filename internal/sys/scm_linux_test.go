package sys_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
	"golang.org/x/sys/unix"
)

// socketPair returns two connected ends.
func socketPair() (a, b *sys.Conn, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	return sys.ConnOfFD(fds[0]), sys.ConnOfFD(fds[1]), nil
}

func connected(t *testing.T) (a, b *sys.Conn) {
	t.Helper()
	a, b, err := socketPair()
	testutil.NoError(t, err)
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

func openFiles(t *testing.T) int { return testutil.Value(sys.OpenFiles(os.Getpid()))(t) }

func TestSentFilesArriveInOrder(t *testing.T) {
	a, b := connected(t)
	first, second := memfile(t, mib), memfile(t, 2*mib)
	testutil.NoError(t, sys.SendFiles(a, []byte("two"), first, second))
	buf := make([]byte, 16)
	n, files, err := sys.RecvFiles(b, buf, 2)
	testutil.NoError(t, err)
	defer closeAll(files)
	if string(buf[:n]) != "two" || len(files) != 2 {
		t.Fatalf("got %q and %d files", buf[:n], len(files))
	}
	for i, sent := range []*os.File{first, second} {
		if !os.SameFile(testutil.Value(sent.Stat())(t), testutil.Value(files[i].Stat())(t)) {
			t.Errorf("file %d is not the one that was sent", i)
		}
	}
	if out := finish(t, command("list memory files")); out != "" {
		t.Errorf("received files leak into started programs: %s", out)
	}
}

func TestMessageWithoutFiles(t *testing.T) {
	a, b := connected(t)
	testutil.NoError(t, sys.SendFiles(a, []byte("none")))
	buf := make([]byte, 16)
	n, files, err := sys.RecvFiles(b, buf, 2)
	if err != nil || n != 4 || len(files) != 0 {
		t.Errorf("got %d bytes, %d files, %v", n, len(files), err)
	}
	a.Close()
	if _, _, err := sys.RecvFiles(b, buf, 2); !errors.Is(err, io.EOF) {
		t.Errorf("after the peer's end: %v, want EOF", err)
	}
}

func TestLongMessageIsSentWhole(t *testing.T) {
	a, b := connected(t)
	long := []byte(strings.Repeat("0123456789abcdef", 1<<16))
	sent := make(chan error, 1)
	f := memfile(t, mib)
	go func() { sent <- sys.SendFiles(a, long, f) }()
	buf := make([]byte, 1)
	_, files, err := sys.RecvFiles(b, buf, 1)
	testutil.NoError(t, err)
	closeAll(files)
	within(t, "the rest of the message", func() {
		rest := make([]byte, len(long)-1)
		if _, err := io.ReadFull(b, rest); err != nil || string(rest) != string(long[1:]) {
			t.Errorf("the rest arrived wrong: %v", err)
		}
		testutil.NoError(t, <-sent)
	})
}

func TestTooManyFilesAreClosed(t *testing.T) {
	a, b := connected(t)
	f := memfile(t, mib)
	before := openFiles(t)
	testutil.NoError(t, sys.SendFiles(a, []byte("x"), f, f, f))
	if _, files, err := sys.RecvFiles(b, make([]byte, 1), 2); !errors.Is(err, sys.ErrTooManyFiles) || files != nil {
		t.Errorf("three files where two are allowed: %v, %d files", err, len(files))
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d open files before, %d after", before, after)
	}
}

func init() {
	roles["run out of descriptors"] = func() error {
		a, b, err := socketPair()
		if err != nil {
			return err
		}
		f, err := sys.Memfd("many")
		if err != nil {
			return err
		}
		many := []*os.File{f, f, f, f, f, f, f, f}
		if err := sys.SendFiles(a, []byte("x"), many...); err != nil {
			return err
		}
		before, err := sys.OpenFiles(os.Getpid())
		if err != nil {
			return err
		}
		var old unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
			return err
		}
		room := old
		room.Cur = uint64(before) + 3 // descriptors are dense here: room for three of eight
		if err := syscall.Setrlimit(unix.RLIMIT_NOFILE, (*syscall.Rlimit)(&room)); err != nil {
			return err
		}
		_, files, err := sys.RecvFiles(b, make([]byte, 1), 8)
		if !errors.Is(err, sys.ErrNoDescriptors) || files != nil {
			return fmt.Errorf("with room for three: %v, %d files", err, len(files))
		}
		if after, err := sys.OpenFiles(os.Getpid()); after != before || err != nil {
			return fmt.Errorf("%d open files before, %d after, %v", before, after, err)
		}
		if err := syscall.Setrlimit(unix.RLIMIT_NOFILE, (*syscall.Rlimit)(&old)); err != nil {
			return err
		}
		if err := sys.SendFiles(a, []byte("x"), many...); err != nil {
			return err
		}
		if _, files, err = sys.RecvFiles(b, make([]byte, 1), 8); err != nil || len(files) != 8 {
			return fmt.Errorf("with room again: %v, %d files", err, len(files))
		}
		fmt.Println("ok")
		return nil
	}
}

func TestRunningOutOfDescriptorsKeepsNone(t *testing.T) {
	if out := finish(t, command("run out of descriptors")); out != "ok" {
		t.Error(out)
	}
}

func TestPidfdTravels(t *testing.T) {
	c, p := standing(t)
	a, b := connected(t)
	testutil.NoError(t, sys.SendFiles(a, []byte("p"), p.File()))
	_, files, err := sys.RecvFiles(b, make([]byte, 1), 1)
	testutil.NoError(t, err)
	got := testutil.Value(sys.PidfdFromFile(files[0]))(t)
	defer got.Close()
	exited(t, got, false)
	testutil.NoError(t, c.Process.Kill())
	within(t, "the end of the process", func() { testutil.NoError(t, got.Wait(t.Context())) })
}

func init() {
	roles["connect"] = func() error {
		c, err := sys.Dial(context.Background(), os.Args[1])
		if err != nil {
			return err
		}
		defer c.Close()
		readyAndWait()
		return nil
	}
}

func TestPeerIsWhoConnected(t *testing.T) {
	l := testutil.Value(sys.Listen("@" + bellName(t, 0)))(t)
	defer l.Close()
	child := start(t, command("connect", "@"+bellName(t, 0)))
	conn := testutil.Value(l.Accept())(t)
	defer conn.Close()

	uid, pid, err := sys.PeerUID(conn)
	if err != nil || uid != os.Getuid() || pid != child.Process.Pid {
		t.Errorf("peer is uid %d, pid %d, %v; want %d, %d", uid, pid, err, os.Getuid(), child.Process.Pid)
	}
	byKernel := testutil.Value(sys.PeerPidfd(conn))(t)
	defer byKernel.Close()
	byNumber := testutil.Value(sys.PeerByNumber(conn))(t)
	defer byNumber.Close()
	exited(t, byKernel, false)
	exited(t, byNumber, false)
	testutil.NoError(t, child.Process.Kill())
	within(t, "the peer's end", func() {
		testutil.NoError(t, byKernel.Wait(t.Context()))
		testutil.NoError(t, byNumber.Wait(t.Context()))
	})
	if _, err := sys.PeerByNumber(conn); !errors.Is(err, os.ErrProcessDone) { // a zombie, whose socket is closed
		t.Errorf("open of a dead peer: %v, want os.ErrProcessDone", err)
	}
}
