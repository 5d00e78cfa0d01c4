package ipc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/link"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

var meetingKey = []byte("a key of the tests")

// A word is what the two sides say: text, and perhaps shared memory.
type word struct {
	Text string
	Blob *blob
}

// A stranger is a process that inherits nothing: it has the address and a mode from its
// environment.
const strangerEnv = "SHOAL_IPC_TEST_STRANGER"

func init() {
	if text := os.Getenv(strangerEnv); text != "" {
		if err := runStranger(text); err != nil {
			fmt.Fprintln(os.Stderr, "stranger:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

func runStranger(text string) error {
	addr, mode, _ := strings.Cut(text, " ")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if mode == "silent" {
		for range 2 * sys.MostStrangers {
			c, err := sys.Dial(ctx, addr)
			if err != nil {
				return err
			}
			defer c.Close()
		}
		fmt.Print("!")
		<-ctx.Done()
		return nil
	}
	if to, ok := strings.CutPrefix(mode, "relay "); ok {
		return relay(ctx, addr, to)
	}
	if mode == "dial any user" {
		if err := ownDomain(); err != nil {
			return err
		}
		_, err := ipc.Dial[word](ctx, addr, meetingKey)
		fmt.Print("!")
		if !errors.Is(err, arena.ErrUser) {
			return fmt.Errorf("a listener of another user: %w", err)
		}
		c, err := ipc.DialWith[word](ctx, addr, meetingKey, ipc.MeetingOptions{AnyUser: true})
		if err != nil {
			return err
		}
		return errors.Join(c.Send(ctx, word{Text: "from another user"}), c.Close())
	}
	if mode == "listener" {
		if err := ownDomain(); err != nil {
			return err
		}
		l, err := ipc.Listen[word](addr, meetingKey)
		if err != nil {
			return err
		}
		defer l.Close()
		fmt.Print("!")
		<-ctx.Done()
		return nil
	}
	if mode != "" {
		if err := ownDomain(); err != nil {
			return err
		}
	}
	if mode == "bytes" {
		return echoBytes(ctx, addr)
	}
	c, err := ipc.Dial[word](ctx, addr, meetingKey)
	if err != nil {
		return err
	}
	defer c.Close()
	for {
		w, err := c.Recv(ctx)
		if errors.Is(err, ipc.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		if w.Blob != nil {
			copy(w.Blob.bytes(), "seen")
		}
		w.Text = fmt.Sprint(w.Text, " ", c.Shared())
		if err := c.Send(ctx, w); err != nil {
			return err
		}
		if w.Blob != nil {
			w.Blob.Close()
		}
	}
}

// ownDomain makes a domain that is so small that qemu-user can back it by memory.
func ownDomain() error {
	d, err := arena.New(arena.Options{Budget: 256 << 20, Reserve: 256 << 20})
	arena.SetDefault(d)
	return err
}

// prove proves the key of the tests to a listener.
func prove(s *sys.Conn) error {
	bound, err := link.ClientBinding(s)
	if err != nil {
		return err
	}
	return link.Client(s, meetingKey, bound)
}

// relay listens at an address and passes on what comes to another one, and back. It knows no key,
// and changes a word of what passes.
func relay(ctx context.Context, from, to string) error {
	l, err := sys.ListenAnew(from)
	if err != nil {
		return err
	}
	defer l.Close()
	fmt.Print("!")
	for {
		front, err := l.Accept()
		if err != nil {
			return err
		}
		back, err := sys.Dial(ctx, to)
		if err != nil {
			return err
		}
		pass := func(to, from *sys.Conn) {
			defer to.Close()
			b := make([]byte, 1<<16)
			for {
				n, err := from.Read(b)
				if err != nil {
					return
				}
				to.Write(bytes.ReplaceAll(b[:n], []byte("true story"), []byte("tall story")))
			}
		}
		go pass(back, front)
		go pass(front, back)
	}
}

func outsider(t *testing.T, addr, mode string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), strangerEnv+"="+addr+" "+mode, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	testutil.NoError(t, cmd.Start())
	return cmd
}

func listen[T any](t *testing.T, addr string) *ipc.Listener[T] {
	t.Helper()
	l, err := ipc.Listen[T](addr, meetingKey)
	testutil.NoError(t, err)
	t.Cleanup(func() { testutil.NoError(t, l.Close()) })
	return l
}

func abstract(t *testing.T) string {
	return fmt.Sprintf("@shoal-test/%d/%s", os.Getpid(), t.Name())
}

func TestListener_StrangerJoinsAndSharesMemory(t *testing.T) {
	d := shared(t)
	ctx := testutil.Context(t)
	for _, addr := range []string{abstract(t), filepath.Join(t.TempDir(), "socket")} {
		l := listen[word](t, addr)
		cmd := outsider(t, addr, "")
		c, err := l.Accept(ctx)
		testutil.NoError(t, err)
		if !c.Shared() {
			t.Fatal("nothing is shared")
		}
		b := newBlob(t, d, "unseen")
		testutil.NoError(t, c.Send(ctx, word{"hello", b}))
		w, err := c.Recv(ctx)
		testutil.NoError(t, err)
		if w.Text != "hello true" || string(b.bytes()[:4]) != "seen" {
			t.Errorf("%q, %q", w.Text, b.bytes())
		}
		testutil.NoError(t, errors.Join(w.Blob.Close(), b.Close()))
		testutil.NoError(t, cmd.Process.Kill())
		_, err = c.Recv(ctx)
		testutil.ErrorIs(t, err, ipc.ErrClosed)
		cmd.Wait()
		testutil.NoError(t, c.Close())
	}
}

func TestConn_BetweenTwoDomainsValuesGoByCopy(t *testing.T) {
	d := shared(t)
	ctx := testutil.Context(t)
	l := listen[word](t, abstract(t))
	cmd := outsider(t, l.Addr(), "own domain")
	c, err := l.Accept(ctx)
	testutil.NoError(t, err)
	defer c.Close()
	if c.Shared() {
		t.Fatal("two domains are one")
	}
	b := newBlob(t, d, "x")
	defer b.Close()
	testutil.ErrorIs(t, c.Send(ctx, word{"hello", b}), ipc.ErrShared)
	testutil.ErrorIs(t, c.Send(ctx, word{Text: strings.Repeat("x", 65<<20)}), codec.ErrTooLong)
	for _, text := range []string{"hello", strings.Repeat("long ", 1<<20)} {
		testutil.NoError(t, c.Send(ctx, word{Text: text}))
		testutil.NoError(t, c.Poll(ctx))
		w, err := c.Recv(ctx)
		if err != nil || w.Text != text+" false" {
			t.Errorf("%.10q, %v", w.Text, err)
		}
	}
	brief, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	_, err = c.Recv(brief)
	testutil.ErrorIs(t, err, ipc.ErrEmpty, context.DeadlineExceeded)
	testutil.ErrorIs(t, c.Poll(brief), context.DeadlineExceeded)
	testutil.NoError(t, cmd.Process.Kill())
	_, err = c.Recv(ctx)
	testutil.ErrorIs(t, err, ipc.ErrClosed)
	testutil.ErrorIs(t, c.Send(ctx, word{}), ipc.ErrClosed)
	cmd.Wait()
}

func TestDial_WrongOnesDoNotMeet(t *testing.T) {
	shared(t)
	ctx := testutil.Context(t)
	l := listen[word](t, abstract(t))
	_, err := ipc.Dial[word](ctx, l.Addr(), []byte("another key"))
	testutil.ErrorIs(t, err, ipc.ErrKey)
	_, err = ipc.Dial[word](ctx, l.Addr(), nil)
	testutil.ErrorIs(t, err, ipc.ErrKey)
	_, err = ipc.Listen[word](abstract(t)+"x", nil)
	testutil.ErrorIs(t, err, ipc.ErrKey)
	_, err = ipc.Dial[int](ctx, l.Addr(), meetingKey)
	testutil.ErrorIs(t, err, ipc.ErrType)
	_, err = ipc.Dial[func()](ctx, l.Addr(), meetingKey)
	testutil.ErrorIs(t, err, codec.ErrType)
	_, err = ipc.Dial[word](ctx, "@shoal-test/nobody", meetingKey)
	testutil.ErrorIs(t, err, syscall.ECONNREFUSED)
	_, err = ipc.Listen[word](l.Addr(), meetingKey)
	testutil.ErrorIs(t, err, syscall.EADDRINUSE)

	// A client that sends garbage is sent away; so is one that proves the key and then says
	// something else.
	for _, garbage := range []string{"GET / HTTP/1.0\r\n\r\n", strings.Repeat("\xff", 1<<16)} {
		s, err := sys.Dial(t.Context(), l.Addr())
		testutil.NoError(t, err)
		s.Write([]byte(garbage))
		for b := make([]byte, 256); err == nil; _, err = s.Read(b) {
		}
		s.Close()
	}
	s, err := sys.Dial(t.Context(), l.Addr())
	testutil.NoError(t, err)
	testutil.NoError(t, prove(s))
	odd := link.NewConn(s, 1<<30)
	testutil.NoError(t, odd.Send(ctx, 'A', []byte("no answer")))
	for err == nil {
		_, _, err = odd.Recv(ctx)
	}
	testutil.ErrorIs(t, err, link.ErrClosed)
	s.Close()

	c, err := ipc.Dial[word](ctx, l.Addr(), meetingKey) // still there, and in one process as well
	testutil.NoError(t, err)
	defer c.Close()
	ready, err := ipc.Wait(ctx, ipc.PollFunc(
		func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }), l)
	if err != nil || fmt.Sprint(ready) != "[1]" {
		t.Errorf("%v, %v", ready, err)
	}
	other, err := l.Accept(ctx)
	testutil.NoError(t, err)
	defer other.Close()
	testutil.NoError(t, other.Send(ctx, word{Text: "hi"}))
	w, err := c.Recv(ctx)
	if w.Text != "hi" || err != nil || !c.Shared() {
		t.Errorf("%q, %v", w.Text, err)
	}
}

// An address of package net would be a socket of that name in the working directory.
func TestListen_AnAddressWithoutTCPIsNoPath(t *testing.T) {
	shared(t)
	t.Chdir(t.TempDir())
	for _, addr := range []string{"localhost:7000", ":7000", "[::1]:7000"} {
		_, err := ipc.Listen[int](addr, meetingKey)
		testutil.ErrorIs(t, err, syscall.EINVAL)
		if want := "tcp://" + addr; !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
		_, err = ipc.Dial[int](t.Context(), addr, meetingKey)
		testutil.ErrorIs(t, err, syscall.EINVAL)
	}
	for _, addr := range []string{"./localhost:7000", "socket", "a:b", "@a:7000"} {
		l, err := ipc.Listen[int](addr, meetingKey)
		testutil.NoError(t, err)
		testutil.NoError(t, l.Close())
	}
}

func TestListener_TakesThePathOfADeadOne(t *testing.T) {
	shared(t)
	path := filepath.Join(t.TempDir(), "socket")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	testutil.NoError(t, err)
	testutil.NoError(t, syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}))
	testutil.NoError(t, syscall.Close(fd)) // as a killed process leaves it
	l := listen[int](t, path)
	_, err = ipc.Listen[int](path, meetingKey)
	testutil.ErrorIs(t, err, syscall.EADDRINUSE)
	testutil.NoError(t, l.Close())
	testutil.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err = ipc.Listen[int](path, meetingKey)
	testutil.ErrorIs(t, err, syscall.EADDRINUSE)
}

func TestListener_CloseEndsEveryWait(t *testing.T) {
	shared(t)
	ctx := testutil.Context(t)
	l := listen[int](t, abstract(t))
	waiting := make(chan error)
	go func() { _, err := l.Accept(ctx); waiting <- err }()
	brief, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	testutil.ErrorIs(t, l.Poll(brief), context.DeadlineExceeded)
	testutil.NoError(t, l.Close())
	testutil.ErrorIs(t, <-waiting, ipc.ErrClosed)
	_, err := ipc.Dial[int](ctx, l.Addr(), meetingKey)
	testutil.ErrorIs(t, err, syscall.ECONNREFUSED)
}

// A listener may be closed while Poll has a connection in its hands, which nobody would close then.
func TestListener_ClosesWhatPollHasFound(t *testing.T) {
	shared(t)
	ctx := testutil.Context(t)
	l := listen[word](t, abstract(t))
	cmd := outsider(t, l.Addr(), "own domain")
	c, err := l.Accept(ctx)
	testutil.NoError(t, err)
	testutil.NoError(t, l.Keep(c))
	again, err := l.Accept(ctx)
	if err != nil || again != c {
		t.Fatalf("another connection, %v", err)
	}
	testutil.NoError(t, l.Close())
	testutil.ErrorIs(t, l.Keep(c), ipc.ErrClosed)
	testutil.ErrorIs(t, c.Send(ctx, word{}), ipc.ErrClosed)
	testutil.NoError(t, cmd.Process.Kill())
	cmd.Wait()
}

// flood connects more often than there may be strangers and says nothing. Connections are accepted
// in turn, so who connects then comes after all of these.
func flood(t *testing.T, addr string) {
	t.Helper()
	for range 2 * sys.MostStrangers {
		c, err := sys.Dial(t.Context(), addr)
		testutil.NoError(t, err)
		t.Cleanup(func() { c.Close() })
	}
}

// All processes of a job may come at once.
func TestDial_ManyAtOnce(t *testing.T) {
	shared(t)
	ctx := testutil.Context(t)
	l := listen[word](t, abstract(t))
	const many = 100
	conns := make(chan *ipc.Conn[word], 2*many)
	var wg sync.WaitGroup
	keep := func(c *ipc.Conn[word], err error) {
		if err != nil {
			t.Error(err)
			return
		}
		conns <- c
	}
	for range many {
		wg.Go(func() { keep(ipc.Dial[word](ctx, l.Addr(), meetingKey)) })
		wg.Go(func() { keep(l.Accept(ctx)) })
	}
	wg.Wait()
	close(conns)
	for c := range conns {
		testutil.NoError(t, c.Close())
	}
}

func TestListener_SilentClientsBlockNobody(t *testing.T) {
	shared(t)
	ctx := testutil.Context(t)
	l := listen[word](t, abstract(t))
	meet := func() (here, there *ipc.Conn[word]) {
		there, err := ipc.Dial[word](ctx, l.Addr(), meetingKey)
		testutil.NoError(t, err)
		here, err = l.Accept(ctx)
		testutil.NoError(t, err)
		t.Cleanup(func() { testutil.NoError(t, errors.Join(here.Close(), there.Close())) })
		return here, there
	}
	greet := func(from, to *ipc.Conn[word]) {
		t.Helper()
		testutil.NoError(t, from.Send(ctx, word{Text: "hello"}))
		if w, err := to.Recv(ctx); err != nil || w.Text != "hello" {
			t.Errorf("%q, %v", w.Text, err)
		}
	}
	here, there := meet()
	flood(t, l.Addr())
	greet(meet())
	greet(here, there)
	greet(there, here)
}

// ready is outsider that waits until it is ready, and ends it with the test.
func ready(t *testing.T, addr, mode string, user *syscall.Credential) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), strangerEnv+"="+addr+" "+mode, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	out, err := cmd.StdoutPipe()
	testutil.NoError(t, err)
	if err := cmd.Start(); err != nil {
		t.Skip("no process of another user can be started: ", err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	_, err = io.ReadFull(out, make([]byte, 1))
	testutil.NoError(t, err)
	return cmd
}

// A client that has connected and is slow stays, whatever another user does.
func TestListener_OneUserPushesOutNoOthers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to connect as another user")
	}
	shared(t)
	l := listen[word](t, abstract(t))
	slow, err := sys.Dial(t.Context(), l.Addr())
	testutil.NoError(t, err)
	defer slow.Close()
	ready(t, l.Addr(), "silent", &syscall.Credential{Uid: 65534, NoSetGroups: true})
	c, err := ipc.Dial[word](testutil.Context(t), l.Addr(), meetingKey)
	testutil.NoError(t, err)
	defer c.Close()
	testutil.NoError(t, slow.SetDeadline(time.Now().Add(time.Minute)))
	testutil.NoError(t, prove(slow))
}

// The listener's process stands still while so many connect that the kernel takes no more.
func TestDial_WaitsWhereTooManyHaveCalled(t *testing.T) {
	shared(t)
	ctx := testutil.Context(t)
	addr := abstract(t)
	cmd := ready(t, addr, "listener", nil)
	testutil.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	full, cancel := context.WithCancel(ctx)
	cancel()
	for {
		c, err := sys.Dial(full, addr)
		if errors.Is(err, syscall.EMFILE) {
			t.Skip("too few descriptors: ", err)
		}
		if errors.Is(err, syscall.EAGAIN) {
			break
		}
		testutil.NoError(t, err)
		defer c.Close()
	}
	brief, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	_, err := ipc.Dial[word](brief, addr, meetingKey)
	testutil.ErrorIs(t, err, context.DeadlineExceeded, syscall.EAGAIN)
	time.AfterFunc(10*time.Millisecond, func() { cmd.Process.Signal(syscall.SIGCONT) })
	var c *ipc.Conn[word]
	for { // on a busy machine the earlier callers may take the listener longer than one Dial waits
		c, err = ipc.Dial[word](ctx, addr, meetingKey)
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			break
		}
	}
	testutil.NoError(t, err)
	testutil.NoError(t, c.Close())
}

// A relay that does not know the key passes on what both sides say, and could change what comes
// after the proof, if the proof were of no connection in particular.
func TestDial_FindsOutARelay(t *testing.T) {
	shared(t)
	ctx := testutil.Context(t)
	l := listen[word](t, abstract(t))
	met := make(chan string, 1)
	go func() {
		c, err := l.Accept(ctx)
		if err != nil {
			return
		}
		w, _ := c.Recv(ctx)
		met <- w.Text
		c.Close()
	}()
	between := abstract(t) + "/relay"
	ready(t, between, "relay "+l.Addr(), nil)
	c, err := ipc.Dial[word](ctx, between, meetingKey)
	if err == nil {
		testutil.NoError(t, c.Send(ctx, word{Text: "a true story"}))
		t.Fatalf("the relay is not found out, and the other side hears %q", <-met)
	}
	testutil.ErrorIs(t, err, ipc.ErrKey)
}

func TestListener_OtherUsersOnlyWhereTheyAreWanted(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to connect as another user")
	}
	shared(t)
	ctx := testutil.Context(t)
	nobody := &syscall.Credential{Uid: 65534, NoSetGroups: true}
	own := listen[word](t, abstract(t)+"/own")
	ready(t, own.Addr(), "dial any user", nobody)
	brief, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if c, err := own.Accept(brief); err == nil {
		c.Close()
		t.Error("another user's process is let in")
	}
	l, err := ipc.ListenWith[word](abstract(t), meetingKey, ipc.MeetingOptions{AnyUser: true})
	testutil.NoError(t, err)
	defer func() { testutil.NoError(t, l.Close()) }()
	ready(t, l.Addr(), "dial any user", nobody)
	c, err := l.Accept(ctx)
	testutil.NoError(t, err)
	w, err := c.Recv(ctx)
	if err != nil || w.Text != "from another user" || c.Shared() {
		t.Errorf("%q, %v", w.Text, err)
	}
	testutil.NoError(t, c.Close())
}
