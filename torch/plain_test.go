package torch

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
)

// TestDial_GoAndPythonMeet meets a Python that was not started by Go, without PyTorch: both roles,
// both networks, the wrong key and the right one.
func TestDial_GoAndPythonMeet(t *testing.T) {
	eachPython(t, func(t *testing.T, py peerPython) {
		for _, network := range []string{"unix", "tcp"} {
			cell(t, "client "+network, func(t *testing.T) { meetClient(t, py, network) })
			cell(t, "server "+network, func(t *testing.T) { meetServer(t, py, network) })
		}
	})
}

// startPlain starts plain.py by itself, and returns a function for the next line that it prints.
func startPlain(t *testing.T, py peerPython, role, network, addr string) (line func() string) {
	t.Helper()
	cmd := exec.CommandContext(testContext(t), py.path, "testdata/plain.py", role, network, addr, string(testKey))
	cmd.Stderr, cmd.Env = os.Stderr, pythonEnv()
	pipe := testutil.Value(cmd.StdoutPipe())(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	out := bufio.NewReader(pipe)
	return func() string {
		t.Helper()
		return strings.TrimSpace(testutil.Value(out.ReadString('\n'))(t))
	}
}

func newAddress(t *testing.T, network string) string {
	if network == "tcp" {
		return "127.0.0.1:0"
	}
	return filepath.Join(t.TempDir(), "socket")
}

// meetClient accepts a client with another key, which Accept passes over, and then one with its
// own.
func meetClient(t *testing.T, py peerPython, network string) {
	l := testutil.Value(Listen(network, newAddress(t, network), Options{AuthKey: testKey}))(t)
	defer l.Close()
	line := startPlain(t, py, "client", network, l.Addr())
	c := testutil.Value(l.Accept(testContext(t)))(t)
	if got := line(); got != "AuthenticationError" {
		t.Errorf("with another key Python got %s", got)
	}
	descriptorsTravel(t, &talk{t: t, ctx: testContext(t), Conn: c})
}

// meetServer dials with another key, and then with Python's own.
func meetServer(t *testing.T, py peerPython, network string) {
	line := startPlain(t, py, "server", network, newAddress(t, network))
	addr, ctx := line(), testContext(t)
	if c, err := Dial(ctx, network, addr, Options{AuthKey: []byte("wrong")}); !errors.Is(err, ErrAuth) {
		t.Errorf("with another key: %v, %v", c, err)
	}
	if got := line(); got != "AuthenticationError" {
		t.Errorf("with another key Python got %s", got)
	}
	descriptorsTravel(t, &talk{t: t, ctx: ctx,
		Conn: testutil.Value(Dial(ctx, network, addr, Options{AuthKey: testKey}))(t)})
}

// descriptorsTravel takes the end of a pipe and gives an open file away. The sharers of both sides
// do their handshakes.
func descriptorsTravel(t *testing.T, k *talk) {
	defer k.Close()
	usePipe(t, k)
	f := testutil.Value(sys.Memfd("note"))(t)
	defer f.Close()
	f.WriteString("hello")
	f.Seek(0, io.SeekStart)
	if got := k.ask("detach", f); !reflect.DeepEqual(got, []byte("hello")) {
		t.Errorf("in a file that was given away: %v", got)
	}
	if err := k.Send(k.ctx, python.Tuple{"eval", "1"}); err != nil {
		t.Fatal(err)
	}
	if raw, err := k.RecvBytes(k.ctx); err != nil ||
		!reflect.DeepEqual(testutil.Value(pt.Unmarshal(raw))(t), int64(1)) {
		t.Errorf("%q, %v", raw, err)
	}
}

// usePipe takes one end of a Pipe of Python's.
func usePipe(t *testing.T, k *talk) {
	t.Helper()
	if err := k.Send(k.ctx, python.Tuple{"pipe"}); err != nil {
		t.Fatal(err)
	}
	pipe := testutil.Value(As[*Conn](k.Conn.Recv(k.ctx)))(t)
	defer pipe.Close()
	if err := pipe.Send(k.ctx, 41); err != nil {
		t.Fatal(err)
	}
	if v, err := pipe.Recv(k.ctx); v != int64(42) || err != nil {
		t.Errorf("through the pipe: %v, %v", v, err)
	}
}

// A form is a value as Go has it, and as Python shows it.
type form struct {
	v    any
	repr string
}

// plainForms are values of all types that need neither PyTorch nor numpy.
func plainForms(t *testing.T) []form {
	shared := []any{"x"}
	ordered := &python.Dict{Ordered: true}
	if err := ordered.Set("z", 1); err != nil {
		t.Fatal(err)
	}
	return []form{
		{nil, "None"}, {true, "True"}, {false, "False"}, {int64(-1), "-1"}, {int64(255), "255"},
		{int64(1 << 16), "65536"}, {int64(1 << 40), "1099511627776"},
		{bigOne(63), "9223372036854775808"}, {bigOne(3000), fmt.Sprint(bigOne(3000))},
		{1.5, "1.5"}, {2i, "2j"}, {"é\x00\U0001f600", `'é\x00😀'`},
		{strings.Repeat("x", 70_000), "'" + strings.Repeat("x", 70_000) + "'"},
		{[]byte{0, 255}, `b'\x00\xff'`}, {[]byte{}, "b''"}, {&python.ByteArray{Bytes: []byte("x")}, "bytearray(b'x')"},
		{python.Tuple{}, "()"}, {python.Tuple{int64(1), python.Tuple{int64(2)}}, "(1, (2,))"},
		{python.Tuple{int64(1), int64(2), int64(3), int64(4)}, "(1, 2, 3, 4)"},
		{[]any{int64(1), []any{}}, "[1, []]"}, {python.Tuple{shared, shared}, "(['x'], ['x'])"},
		{python.NewDict("b", int64(1), "a", nil), "{'b': 1, 'a': None}"},
		{testutil.Value(python.NewSet(false, "a"))(t), "{'a'}"},
		{testutil.Value(python.NewSet(true, int64(1)))(t), "frozenset({1})"},
		{python.Global{Module: "collections", Name: "OrderedDict"}, "<class 'collections.OrderedDict'>"},
		{ordered, "OrderedDict({'z': 1})"},
	}
}

// TestConn_PlainValuesCross lets Python read plain values that Go has written, and the other way
// round, in each protocol of pickle.
func TestConn_PlainValuesCross(t *testing.T) {
	eachPython(t, func(t *testing.T, py peerPython) {
		for protocol := 2; protocol <= 5; protocol++ {
			cell(t, fmt.Sprint("protocol ", protocol), func(t *testing.T) {
				k := chat(t, py, Options{Protocol: protocol})
				for _, c := range plainForms(t) {
					plainValue(t, k, c, protocol)
				}
				k.bye()
			})
		}
	})
}

func plainValue(t *testing.T, k *talk, c form, protocol int) {
	old := strings.NewReplacer("({'z': 1})", "([('z', 1)])") // as Python up to 3.11 shows it
	same := func(repr any) bool { return repr == c.repr || repr == old.Replace(c.repr) }
	if got := k.ask("repr", c.v); !same(got) {
		t.Errorf("%.60v arrived as %.60v, not %.60s", c.v, got, c.repr)
	}
	code := strings.TrimSuffix(strings.TrimPrefix(c.repr, "<class 'collections."), "'>")
	if strings.HasPrefix(c.repr, "(['x']") {
		code = "(lambda x: (x, x))(['x'])"
	}
	written := asked[[]byte](k, "eval", fmt.Sprintf("pickle.dumps(%s, %d)", code, protocol))
	v, err := pt.Unmarshal(written)
	if err != nil {
		t.Fatalf("%.60s: %v", c.repr, err)
	}
	// it differs also if one object became two
	got := testutil.Value(pt.Marshal(v, pt.MarshalOptions{}))(t)
	if want := testutil.Value(pt.Marshal(c.v, pt.MarshalOptions{}))(t); !bytes.Equal(got, want) {
		t.Errorf("%.60s was read as %T %.60v", c.repr, v, v)
	}
	if got := k.ask("repr", v); !same(got) {
		t.Errorf("%.60s came back as %.60v", c.repr, got)
	}
}
