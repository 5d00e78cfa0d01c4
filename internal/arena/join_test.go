package arena_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/test/testutil"
)

func init() {
	actors["stranger"] = actStranger
	actors["listener"] = func(_ *arena.Domain, args []string) error {
		d, err := arena.New(arena.Options{Budget: 1 << 20, Reserve: 16 << 20})
		if err != nil {
			return err
		}
		if _, err := d.Listen(arena.ListenOptions{Path: args[0]}); err != nil {
			return err
		}
		say("ready")
		untilKilled()
		return d.Close()
	}
}

// actStranger joins by a socket, imports a block and holds it and one of its own.
func actStranger(_ *arena.Domain, args []string) error {
	ctx := context.Background()
	d, err := arena.Join(ctx, args[0], tokenArg(args[1]))
	if err != nil {
		return err
	}
	if err := d.Import(handleArg(args[2])); err != nil {
		return err
	}
	b, err := d.Bytes(handleArg(args[2]))
	if err != nil {
		return err
	}
	if _, err := d.Alloc(100_000); err != nil {
		return err
	}
	say("%s", strings.TrimRight(string(b[:8]), "\x00"))
	untilKilled()
	return d.Close()
}

func tokenArg(s string) (t arena.Token) {
	for i := range t {
		n, err := strconv.ParseUint(s[2*i:2*i+2], 16, 8)
		if err != nil {
			panic(err)
		}
		t[i] = byte(n)
	}
	return t
}

func tokenText(t arena.Token) string {
	const digits = "0123456789abcdef"
	var b []byte
	for _, c := range t {
		b = append(b, digits[c>>4], digits[c&15])
	}
	return string(b)
}

func listen(t *testing.T, d *arena.Domain, path string) *arena.Listener {
	t.Helper()
	l, err := d.Listen(arena.ListenOptions{Path: path})
	testutil.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

func TestJoin_StrangersDeathIsNoticed(t *testing.T) {
	for name, path := range map[string]string{"abstract": "", "path": filepath.Join(t.TempDir(), "socket")} {
		t.Run(name, func(t *testing.T) {
			d := newDomain(t, 16<<20)
			l := listen(t, d, path)
			h := alloc(t, d, 4096, "for you\x00")
			a := start(t, nil, "stranger", l.Addr(), tokenText(l.Token()), argOf(h))
			if s := a.hear(); s != "for you" {
				t.Errorf("the stranger read %q", s)
			}
			testutil.NoError(t, d.Release(h))
			if n := d.Stats().Blocks; n != 2 {
				t.Errorf("%d blocks in use, want the stranger's 2", n)
			}
			a.kill()
			testutil.Eventually(t, func() bool { return d.Stats().Reaped == 1 }, "the stranger is not reaped")
			wantRest(t, d, 0)
		})
	}
}

func TestJoin_IsRefused(t *testing.T) {
	d := newDomain(t, 1<<20)
	l := listen(t, d, "")
	wrong := l.Token()
	wrong[15]++
	if _, err := arena.Join(testutil.Context(t), l.Addr(), wrong); !errors.Is(err, arena.ErrToken) {
		t.Errorf("wrong token: %v, want ErrToken", err)
	}
	s, err := d.Serve()
	testutil.NoError(t, err)
	if _, err := arena.Join(testutil.Context(t), s.Addr(), arena.Token{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("join by the socket for inspection: %v, want ErrUnsupported", err)
	}
	l.ServeUser(os.Getuid() + 1)
	if _, err := arena.Join(testutil.Context(t), l.Addr(), l.Token()); !errors.Is(err, arena.ErrUser) {
		t.Errorf("another user joins: %v, want ErrUser", err)
	}
	if _, err := arena.Inspect(testutil.Context(t), l.Addr()); !errors.Is(err, arena.ErrUser) {
		t.Errorf("another user inspects: %v, want ErrUser", err)
	}
	if n := d.Stats().Participants; n != 1 {
		t.Errorf("%d participants", n)
	}
}

func TestJoin_OfAnotherVersionOrNamespaceIsRefused(t *testing.T) {
	l := listen(t, newDomain(t, 1<<20), "")
	const ours = arena.ProtocolVersion
	for _, theirs := range []uint16{1, ours - 1, ours, ours + 1} { // 1 is what versions before 9 say
		c, err := net.Dial("unix", l.Addr())
		testutil.NoError(t, err)
		defer c.Close()
		_, err = c.Write(arena.JoinRequest(l.Token(), theirs, layout.Hash()+1))
		testutil.NoError(t, err)
		answer := make([]byte, len(arena.Answer(0)))
		_, err = io.ReadFull(c, answer)
		testutil.NoError(t, err)
		wantVersions(t, arena.Judge(answer), fmt.Sprintf("has version %d,", ours), true)
		binary.LittleEndian.PutUint32(answer[4:], 0) // as a listener before version 9 answers
		wantVersions(t, arena.Judge(answer), "has version below 9,", true)
	}
	for _, at := range []int{16, 24} {
		a := arena.Answer(0)
		testutil.NoError(t, arena.Judge(a))
		a[at] ^= 1
		if err := arena.Judge(a); !errors.Is(err, arena.ErrNamespace) {
			t.Errorf("another namespace: %v, want ErrNamespace", err)
		}
	}
}

// A client that connects and says nothing, or nonsense, is in nobody's way.
func TestListen_SilentClientsBlockNobody(t *testing.T) {
	d := newDomain(t, 1<<20)
	l := listen(t, d, "")
	for i := range 2 * arena.MaxConnections {
		c, err := net.Dial("unix", l.Addr())
		testutil.NoError(t, err)
		defer c.Close()
		if i%2 == 0 {
			c.Write([]byte("shoal"))
		}
	}
	again, err := arena.Join(testutil.Context(t), l.Addr(), l.Token())
	testutil.NoError(t, err)
	testutil.NoError(t, again.Close())
}

// All processes of a job may come at once.
func TestJoin_ManyAtOnce(t *testing.T) {
	d := newDomain(t, 1<<20)
	l := listen(t, d, "")
	ctx := testutil.Context(t)
	var wg sync.WaitGroup
	for range 128 {
		wg.Go(func() {
			again, err := arena.Join(ctx, l.Addr(), l.Token())
			if err == nil {
				err = again.Close()
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestJoin_EndsWithItsContext(t *testing.T) {
	mute, err := net.Listen("unix", filepath.Join(t.TempDir(), "mute"))
	testutil.NoError(t, err)
	defer mute.Close()
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error)
	go func() { _, err := arena.Join(ctx, mute.Addr().String(), arena.Token{}); got <- err }()
	c, err := mute.Accept()
	testutil.NoError(t, err)
	defer c.Close()
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Errorf("join: %v, want context.Canceled", err)
	}
}

func TestListen_ReplacesThePathSocketOfTheDead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	a := start(t, nil, "listener", path)
	a.hear()
	d := newDomain(t, 1<<20)
	if _, err := d.Listen(arena.ListenOptions{Path: path}); !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("listen where another does: %v, want EADDRINUSE", err)
	}
	a.kill()
	if _, err := os.Lstat(path); err != nil {
		t.Fatal(err) // what a killed listener leaves
	}
	l := listen(t, d, path)
	again, err := arena.Join(testutil.Context(t), path, l.Token())
	testutil.NoError(t, err)
	testutil.NoError(t, again.Close())
	testutil.NoError(t, l.Close())
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket of a closed listener: %v", err)
	}
}

func TestListen_SparesFilesThatAreNoSockets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "precious")
	testutil.NoError(t, os.WriteFile(path, []byte("data"), 0o600))
	if _, err := newDomain(t, 1<<20).Listen(arena.ListenOptions{Path: path}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("listen: %v, want ErrExist", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "data" {
		t.Errorf("the file: %q, %v", b, err)
	}
}

func TestInspect_TellsTheStatistics(t *testing.T) {
	d := newDomain(t, 8<<20)
	alloc(t, d, 1<<20, "x")
	testutil.NoError(t, d.Bind(context.Background(), "a name", nil, nil))
	s, err := d.Serve()
	testutil.NoError(t, err)
	all, err := arena.Domains()
	testutil.NoError(t, err)
	if !slices.Contains(all, s.Addr()) {
		t.Errorf("%s is not among %v", s.Addr(), all)
	}
	r, err := arena.Inspect(testutil.Context(t), s.Addr())
	testutil.NoError(t, err)
	if r.PID != os.Getpid() || r.Stats != d.Stats() || len(r.Holders) != 1 || r.Holders[0].Bytes != 1<<20 ||
		!slices.Equal(r.Names, []string{"a name"}) {
		t.Errorf("report: %+v", r)
	}
	testutil.NoError(t, d.Close())
	if _, err := arena.Inspect(testutil.Context(t), s.Addr()); err == nil {
		t.Error("a closed domain answers")
	}
	if _, err := d.Serve(); !errors.Is(err, arena.ErrClosed) {
		t.Errorf("serve: %v, want ErrClosed", err)
	}
}

func TestDomain_IsFoundInTheKernelsTable(t *testing.T) {
	const table = `Num       RefCount Protocol Flags    Type St Inode Path
ffff: 00000002 00000000 00010000 0001 01 11 @shoal/7/2-b
ffff: 00000002 00000000 00010000 0001 01 12 @shoal/7/1-a
ffff: 00000003 00000000 00000000 0001 03 13 @shoal/7/1-a
ffff: 00000002 00000000 00010000 0001 01 14 @shoal/7/3-c-join
ffff: 00000002 00000000 00010000 0001 01 15 @shoal/77/1-a
ffff: 00000002 00000000 00000000 0002 01 16 @shoal/0123/0.0
ffff: 00000002 00000000 00010000 0001 01 17
`
	all, err := arena.Listening(strings.NewReader(table), "@shoal/7/")
	testutil.NoError(t, err)
	if want := []string{"@shoal/7/1-a", "@shoal/7/2-b"}; !slices.Equal(all, want) {
		t.Errorf("got %v, want %v", all, want)
	}
}

func FuzzJoinRequest(f *testing.F) {
	d := newDomain(f, 1<<20)
	l, err := d.Listen(arena.ListenOptions{})
	testutil.NoError(f, err)
	f.Add(arena.JoinRequest(arena.Token{}, arena.ProtocolVersion, layout.Hash()))
	f.Add([]byte("shoalI\x01\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := net.Dial("unix", l.Addr())
		testutil.NoError(t, err)
		defer c.Close()
		c.Write(b)
		c.(*net.UnixConn).CloseWrite()
		io.Copy(io.Discard, c)
		if n := d.Stats().Participants; n != 1 {
			t.Fatalf("%d participants", n)
		}
	})
}

func BenchmarkServe(b *testing.B) {
	d := newDomain(b, 1<<20)
	for b.Loop() {
		l, err := d.Serve()
		testutil.NoError(b, err)
		testutil.NoError(b, l.Close())
	}
}

// FuzzJoinAnswer has listeners say anything to a process that joins or inspects: it gets an error,
// keeps no descriptor, and ends.
func FuzzJoinAnswer(f *testing.F) {
	l, err := net.Listen("unix", filepath.Join(f.TempDir(), "socket"))
	testutil.NoError(f, err)
	f.Cleanup(func() { l.Close() })
	var answer atomic.Pointer[[]byte] // to each that asks, once or twice
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.ReadFull(c, make([]byte, len(arena.JoinRequest(arena.Token{}, 0, 0))))
				c.Write(*answer.Load())
			}()
		}
	}()
	f.Add(arena.Answer(0))
	f.Add(arena.Answer(2))
	f.Add([]byte(`{"PID":1}`))
	f.Add([]byte("\t{\"pids\":1}"))
	f.Add([]byte(`null`))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		answer.Store(&b)
		var claims struct{ PID int }
		report := json.Unmarshal(b, &claims) == nil && claims.PID > 0
		for _, ask := range []func() error{
			func() error { _, err := arena.Join(t.Context(), l.Addr().String(), arena.Token{}); return err },
			func() error { _, err := arena.Inspect(t.Context(), l.Addr().String()); return err },
			func() error {
				_, err := arena.Observe(t.Context(), l.Addr().String())
				return err
			},
		} {
			if err := ask(); err == nil && !report {
				t.Errorf("%q is believed", b)
			}
		}
	})
}

// FuzzKeeper says anything to a domain's keeper, which goes on.
func FuzzKeeper(f *testing.F) {
	d := newDomain(f, 1<<20)
	for op := range 9 {
		f.Add(append([]byte{byte(op), 0, 0, 0, 0, 0, 0, 0}, make([]byte, 32)...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := net.Dial("unix", arena.KeeperAddress(d))
		testutil.NoError(t, err)
		defer c.Close()
		c.Write(b)
		c.(*net.UnixConn).CloseWrite()
		io.Copy(io.Discard, c)
		if s := d.Stats(); s.Participants != 1 || s.Blocks != 0 {
			t.Fatalf("%+v", s)
		}
	})
}
