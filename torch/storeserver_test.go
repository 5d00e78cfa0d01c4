package torch

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/test/testutil"
)

// serveStore serves a store at a free port, and keeps the reasons of its refusals.
func serveStore(t *testing.T, o StoreOptions) (s *storeServer, refused chan error) {
	t.Helper()
	refused = make(chan error, 100)
	o.Refused = func(_ net.Addr, err error) { refused <- err }
	store, err := ServeStore(t.Context(), "127.0.0.1:0", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store.shared.server, refused
}

func dialServer(t *testing.T, s *storeServer) *Store {
	t.Helper()
	c, err := DialStore(testContext(t), s.address(), StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestServeStore_AnswersEveryQuery lets Go's client send every query to Go's server.
func TestServeStore_AnswersEveryQuery(t *testing.T) {
	server, _ := serveStore(t, StoreOptions{})
	s, ctx := dialServer(t, server).Prefix("job"), testContext(t)
	check := func(what string, got, want any, err error) {
		t.Helper()
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, not %v: %v", what, got, want, err)
		}
	}
	check("set", nil, nil, s.Set(ctx, "a", []byte("x")))
	v, err := s.Get(ctx, "a")
	check("get", string(v), "x", err)
	n, err := s.Add(ctx, "n", 5)
	check("add", n, 5, err)
	n, err = s.Add(ctx, "n", -7)
	check("add", n, -2, err)
	there, err := s.Check(ctx, "a", "n")
	check("check", there, true, err)
	there, err = s.Check(ctx, "a", "none")
	check("check", there, false, err)
	v, err = s.CompareSet(ctx, "none", []byte("e"), []byte("d"))
	check("compare and set nothing", string(v), "e", err)
	v, err = s.CompareSet(ctx, "a", []byte("e"), []byte("d"))
	check("compare and set another", string(v), "x", err)
	v, err = s.CompareSet(ctx, "a", []byte("x"), []byte("y"))
	check("compare and set", string(v), "y", err)
	check("append", nil, nil, s.Append(ctx, "a", []byte("z")))
	check("set several", nil, nil, s.MultiSet(ctx, []string{"b", "empty"}, [][]byte{[]byte("1"), {}}))
	all, err := s.MultiGet(ctx, "a", "empty", "b")
	check("get several", fmt.Sprintf("%q", all), `["yz" "" "1"]`, err)
	keys, err := s.NumKeys(ctx)
	check("number of keys", keys, 4, err)
	was, err := s.Delete(ctx, "b")
	check("delete", was, true, err)
	was, err = s.Delete(ctx, "b")
	check("delete", was, false, err)
	if _, err := s.Add(ctx, "a", 1); !errors.Is(err, ErrClosed) {
		t.Errorf("added to what is no number: %v", err)
	}
	v, err = s.Get(ctx, "a")
	check("get after that", string(v), "yz", err)
}

// TestServeStore_WaitsEnd waits for keys that come one by one, in another order, and beside a
// client that has given up.
func TestServeStore_WaitsEnd(t *testing.T) {
	server, _ := serveStore(t, StoreOptions{})
	s, ctx := dialServer(t, server), testContext(t)
	soon, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if err := s.Wait(soon, "a", "never"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a wait for what never comes: %v", err)
	}
	var ended sync.WaitGroup
	for i := range 20 {
		ended.Go(func() {
			if err := s.Wait(ctx, "a", "b", "a", fmt.Sprint("c", i%3)); err != nil {
				t.Error(err)
			}
		})
	}
	for _, key := range []string{"c0", "c2", "b", "c1", "a"} {
		if err := s.Set(ctx, key, nil); err != nil {
			t.Error(err)
		}
	}
	ended.Wait()
	testutil.Eventually(t, func() bool {
		server.table.mu.Lock()
		defer server.table.mu.Unlock()
		return len(server.table.waiting) == 0
	}, "waited in vain for no wait to be left")
}

// A rawClient speaks to a server byte by byte.
type rawClient struct {
	t *testing.T
	net.Conn
}

func dialRaw(t *testing.T, s *storeServer, hello ...byte) rawClient {
	t.Helper()
	c, err := net.Dial("tcp", s.address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(time.Minute))
	raw := rawClient{t, c}
	raw.say(hello...)
	return raw
}

func (c rawClient) say(b ...byte) {
	c.t.Helper()
	if _, err := c.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

func (c rawClient) hear(want ...byte) {
	c.t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
		c.t.Errorf("the server says % x and not % x: %v", got, want, err)
	}
}

// hello is the first message of a client of PyTorch 2.
var helloStore = binary.LittleEndian.AppendUint32([]byte{byte(queryValidate)}, storeMagic)

// ask is a query of a client of PyTorch 2. Several keys come after their count.
func ask(code query, parts ...string) []byte {
	r := storeRequest{}
	r.appendQuery(code)
	for _, p := range parts {
		r.appendKey(p)
	}
	return r.b
}

func one(key string) (b []byte) {
	r := storeRequest{}
	return r.appendKeys([]string{key}).b
}

// TestServeStore_WaitsAreCancelled cancels waits, before and after they are over, and goes on by
// the same connection.
func TestServeStore_WaitsAreCancelled(t *testing.T) {
	server, _ := serveStore(t, StoreOptions{})
	c := dialRaw(t, server, helloStore...)
	c.say(append([]byte{byte(queryWait)}, one("/k")...)...)
	c.say(byte(queryCancelWait))
	c.hear(waitCanceled)
	c.say(append([]byte{byte(queryWait)}, one("/k")...)...)
	if err := dialServer(t, server).Set(testContext(t), "k", nil); err != nil {
		t.Fatal(err)
	}
	c.say(byte(queryCancelWait))
	c.hear(stopWaiting, waitCanceled)
	c.say(byte(queryPing), 1, 2, 3, 4)
	c.hear(1, 2, 3, 4)
	// PyTorch 1 has no CANCEL_WAIT. The next query ends the wait.
	old := dialRaw(t, server, append([]byte{firstQueries[queryWait]}, one("/late")...)...)
	old.say(firstQueries[queryNumKeys])
	old.hear(1, 0, 0, 0, 0, 0, 0, 0)
	if err := dialServer(t, server).Set(testContext(t), "late", nil); err != nil {
		t.Fatal(err)
	}
	old.say(firstQueries[queryNumKeys])
	old.hear(2, 0, 0, 0, 0, 0, 0, 0)
}

// TestServeStore_HasQueuesAndBarriers speaks the protocol of the latest clients of PyTorch.
func TestServeStore_HasQueuesAndBarriers(t *testing.T) {
	server, _ := serveStore(t, StoreOptions{})
	a, b, c := dialRaw(t, server, helloStore...), dialRaw(t, server, helloStore...), dialRaw(t, server, helloStore...)
	ping := func(c rawClient) { c.say(byte(queryPing), 7, 7, 7, 7); c.hear(7, 7, 7, 7) }
	a.say(append([]byte{byte(queryWait)}, one("q")...)...)
	testutil.Eventually(t, func() bool { return waits(server) == 1 }, "waited in vain for the first to wait")
	b.say(append([]byte{byte(queryWait)}, one("q")...)...)
	testutil.Eventually(t, func() bool { return waits(server) == 2 }, "waited in vain for the second to wait")
	c.say(ask(queryQueuePush, "q", "v")...)
	ping(c)
	a.hear(stopWaiting) // the client that came first
	a.Close()           // without the value
	b.hear(stopWaiting)
	b.say(ask(queryQueuePop, "q")...)
	b.hear(1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 'v')
	b.say(ask(queryQueuePop, "q")...)
	b.hear(0, 0, 0, 0, 0, 0, 0, 0)
	two := append(ask(queryBarrier, "all"), 2, 0, 0, 0, 0, 0, 0, 0)
	b.say(two...)
	testutil.Eventually(t, func() bool { return waits(server) == 1 }, "waited in vain for the first at the barrier")
	c.say(two...)
	b.hear(stopWaiting)
	c.hear(stopWaiting)
	c.say(byte(queryListKeys))
	c.hear(1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 'a', 'l', 'l')
}

func waits(s *storeServer) (n int) {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	for _, all := range s.table.waiting {
		n += len(all)
	}
	return n
}

// TestServeStore_Refuses has clients that send no query, or too much. Each is disconnected, with a
// reason. The others go on.
func TestServeStore_Refuses(t *testing.T) {
	server, refused := serveStore(t, StoreOptions{MaxClients: 3, MaxValue: 100, MaxBytes: 4000})
	s, ctx := dialServer(t, server), testContext(t)
	long := func(code query, n uint64) []byte { return binary.LittleEndian.AppendUint64([]byte{byte(code)}, n) }
	for name, k := range map[string]struct {
		bytes []byte
		want  error
	}{
		"a web browser":       {[]byte("GET / HTTP/1.1\r\n\r\n"), ErrProtocol},
		"another magic":       {[]byte{0, 1, 2, 3, 4, 5, 6, 7, 8}, ErrTooLong},
		"no query":            {append(slices.Clone(helloStore), 99), ErrProtocol},
		"a long key":          {append(slices.Clone(helloStore), long(queryGet, maxStoreKey+1)...), ErrTooLong},
		"a key of 2^63 bytes": {append(slices.Clone(helloStore), long(queryGet, 1<<63)...), ErrTooLong},
		"many keys":           {append(slices.Clone(helloStore), long(queryWait, maxStoreKeys+1)...), ErrTooLong},
		"a long value": {append(append(slices.Clone(helloStore), ask(querySet, "k")...),
			long(0, 101)[1:]...), ErrTooLong},
		"watch_key":    {append([]byte{watchKey}, 1, 0, 0, 0, 0, 0, 0, 0, 'k'), ErrUnsupported},
		"half a query": {append(slices.Clone(helloStore), byte(querySet), 1, 0), io.ErrUnexpectedEOF},
		"half a hello": {helloStore[:3], io.ErrUnexpectedEOF},
		"keys without end": {append(append(slices.Clone(helloStore), long(queryCheck, 1000)...),
			bytes.Repeat([]byte{1, 0, 0, 0, 0, 0, 0, 0, 'k'}, 1000)...), ErrTooLong},
	} {
		c := dialRaw(t, server, k.bytes...)
		c.Conn.(*net.TCPConn).CloseWrite()
		if err := <-refused; !errors.Is(err, k.want) {
			t.Errorf("%s: %v, not %v", name, err, k.want)
		}
		io.Copy(io.Discard, c)
		testutil.Eventually(t, func() bool {
			server.mu.Lock()
			defer server.mu.Unlock()
			return len(server.clients) == 1
		}, "waited in vain for the client to be gone")
	}
	for i := range 100 {
		if err := s.Set(ctx, fmt.Sprint(i), make([]byte, 100)); err != nil {
			if failed := <-refused; !errors.Is(failed, ErrTooLong) ||
				!strings.Contains(failed.Error(), "MaxBytes") || i < 10 {
				t.Errorf("after %d values: %v", i, failed)
			}
			break
		}
	}
	if was, err := s.Delete(ctx, "0"); !was || err != nil {
		t.Errorf("a full store: %v", err)
	}
	if err := s.Set(ctx, "0", make([]byte, 100)); err != nil {
		t.Errorf("where there is room again: %v", err)
	}
	for range 3 {
		dialRaw(t, server)
	}
	if err := <-refused; !strings.Contains(err.Error(), "MaxClients") {
		t.Error(err)
	}
}

// TestServeStore_Ends ends the server by Close and by its context, while clients wait.
func TestServeStore_Ends(t *testing.T) {
	for _, byContext := range []bool{false, true} {
		ctx, cancel := context.WithCancel(testContext(t))
		server, err := ServeStore(ctx, "127.0.0.1:0", StoreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s := dialServer(t, server.shared.server)
		waited := make(chan error)
		go func() { waited <- s.Wait(testContext(t), "never") }()
		testutil.Eventually(t, func() bool { return waits(server.shared.server) == 1 }, "waited in vain for it to wait")
		short, stop := context.WithTimeout(ctx, time.Millisecond)
		if err := server.Drain(short); !errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "clients are still connected") {
			t.Errorf("drained with clients: %v", err)
		}
		stop()
		if byContext {
			cancel()
		} else if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-waited; !errors.Is(err, ErrClosed) {
			t.Errorf("a wait at the end of the server: %v", err)
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := server.Drain(testContext(t)); err != nil {
			t.Error(err)
		}
		if _, err := net.Dial("tcp", server.Addr()); err == nil {
			t.Error("it listens after its end")
		}
		cancel()
	}
	server, _ := serveStore(t, StoreOptions{})
	var failed *StoreError
	if _, err := ServeStore(t.Context(), server.address(), StoreOptions{}); !errors.As(err, &failed) ||
		!strings.Contains(err.Error(), "another process") {
		t.Errorf("a port that is taken: %v", err)
	}
	if _, err := ServeStore(t.Context(), "192.0.2.1:0", StoreOptions{}); !errors.As(err, &failed) ||
		!strings.Contains(err.Error(), "another machine") {
		t.Errorf("an address that is not ours: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ServeStore(ended, "127.0.0.1:0", StoreOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that is done: %v", err)
	}
}

// startRanks starts ranks 1 and 2 of a job.
func startRanks(t *testing.T, py peerPython, env ...string) (output func() string) {
	t.Helper()
	var all []*exec.Cmd
	var text bytes.Buffer
	for rank := 1; rank <= 2; rank++ {
		cmd := exec.CommandContext(testContext(t), py.path, "testdata/storeranks.py")
		cmd.Env = append(py.environ(env...), fmt.Sprint("RANK=", rank))
		cmd.Stdout, cmd.Stderr = &synced{w: &text}, &synced{w: &text}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, cmd)
	}
	return func() string {
		for _, cmd := range all {
			if err := cmd.Wait(); err != nil {
				fmt.Fprintln(&synced{w: &text}, err)
			}
		}
		return text.String()
	}
}

// synced lets several processes write.
type synced struct{ w io.Writer }

var syncing sync.Mutex

// Write writes.
func (s *synced) Write(b []byte) (int, error) {
	syncing.Lock()
	defer syncing.Unlock()
	return s.w.Write(b)
}

// serve is the part of a rank 0 of Go beside testdata/storeranks.py.
func serve(ctx context.Context, r *Rank) error {
	defer r.Close()
	if v, err := r.Store.Get(ctx, "python"); err != nil || string(v) != "is here" {
		return fmt.Errorf("%q, %w", v, err)
	}
	if err := r.Store.Set(ctx, "go", []byte("gö")); err != nil {
		return err
	}
	type metrics struct {
		Rank int `json:"rank"`
	}
	all, err := GatherJSON(ctx, r, "metrics", metrics{}, 0, 1, 2)
	if err != nil || !slices.Equal(all, []metrics{{0}, {1}, {2}}) {
		return fmt.Errorf("metrics %v: %w", all, err)
	}
	if n, err := r.Store.Add(ctx, "met", 0); n != 2 || err != nil {
		return fmt.Errorf("%d have met: %w", n, err)
	}
	if err := r.Store.Set(ctx, "bye", nil); err != nil {
		return err
	}
	fmt.Println("go 0 is done; has it served?", r.Serves)
	return r.Store.Drain(ctx)
}

// TestServeStore_ServesPyTorch lets ranks of PyTorch, without torchrun, send every query to a store
// of Go's, and meet in a process group by it.
func TestServeStore_ServesPyTorch(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		port := freePort(t)
		env := []string{"WORLD_SIZE=3", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port}
		for _, pair := range append(env, "RANK=0", "TORCHELASTIC_USE_AGENT_STORE=", "TORCHELASTIC_RESTART_COUNT=0") {
			name, value, _ := strings.Cut(pair, "=")
			t.Setenv(name, value)
		}
		output := startRanks(t, py, env...) // they wait for the store
		r, err := Rendezvous(testContext(t), StoreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !r.Serves || r.Store.Addr() != "127.0.0.1:"+port {
			t.Errorf("served: %v, at %s", r.Serves, r.Store.Addr())
		}
		err = serve(testContext(t), r)
		if out := output(); err != nil || strings.Count(out, "is done") != 2 {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// TestServeStore_UnderTorchrunStandalone lets torchrun start all three ranks. Before PyTorch 2.5
// rank 0 serves the store, later torchrun does.
func TestServeStore_UnderTorchrunStandalone(t *testing.T) {
	eachTorchrun(t, func(t *testing.T, py peerPython) {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		choose := fmt.Sprintf(
			`if [ "$RANK" = 0 ]; then exec %s; else unset SHOAL_TEST_RANK; exec %s testdata/storeranks.py; fi`,
			self, py.path)
		ctx := testContext(t)
		args := []string{"-m", "torch.distributed.run", "--standalone", "--nproc_per_node=3",
			"--monitor_interval=0.2", "--log_dir", t.TempDir(), "-r", "3", "-t", "3",
			"--no_python", "/bin/sh", "-c", choose}
		if strings.HasPrefix(py.version, "1.") { // under Python 3.11 it starts nothing unless output is redirected
			args[8], args[10] = "1", "1"
		}
		cmd := exec.CommandContext(ctx, py.path, args...)
		cmd.Env = py.environ("SHOAL_TEST_RANK=serve")
		cmd.WaitDelay = 10 * time.Second
		b, err := cmd.CombinedOutput()
		serves := strings.HasPrefix(py.version, "1.") || strings.HasPrefix(py.version, "2.4.")
		for _, want := range []string{fmt.Sprint("go 0 is done; has it served? ", serves), "python 1 is done",
			"python 2 is done"} {
			if strings.Count(string(b), want) != 1 {
				t.Errorf("not once %q, %v, in\n%s", want, err, b)
			}
		}
	})
}

// A Refused that panics or calls runtime.Goexit does not end the server.
func TestServeStore_AFaultyRefusedEndsNothing(t *testing.T) {
	called := make(chan struct{}, 10)
	for _, fault := range []func(){func() { panic("on purpose") }, runtime.Goexit} {
		store, err := ServeStore(t.Context(), "127.0.0.1:0", StoreOptions{MaxClients: 1,
			Refused: func(net.Addr, error) { called <- struct{}{}; fault() }})
		if err != nil {
			t.Fatal(err)
		}
		address := store.shared.server.address()
		first := dialServer(t, store.shared.server)
		for range 2 {
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Read(make([]byte, 1)); err == nil {
				t.Error("a client beyond MaxClients got a byte")
			}
			c.Close()
			<-called
		}
		if err := first.Set(testContext(t), "a", []byte("x")); err != nil {
			t.Error(err)
		}
		store.Close()
	}
}
