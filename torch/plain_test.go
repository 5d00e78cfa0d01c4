package torch

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/sys"
)

// TestPlainPython speaks with every Python that SHOAL_PYTHONS names, without PyTorch: both roles, both networks.
func TestPlainPython(t *testing.T) {
	paths := filepath.SplitList(os.Getenv("SHOAL_PYTHONS"))
	if p, err := exec.LookPath("python3"); err == nil && len(paths) == 0 {
		paths = []string{p}
	}
	if len(paths) == 0 {
		t.Skip("there is no python3 to speak with")
	}
	for _, path := range paths {
		for _, network := range []string{"unix", "tcp"} {
			cell(t, fmt.Sprintf("%s client %s", path, network), func(t *testing.T) { plainClient(t, path, network) })
			cell(t, fmt.Sprintf("%s server %s", path, network), func(t *testing.T) { plainServer(t, path, network) })
		}
	}
}

func startPlain(t *testing.T, path, role, network, addr string) (out *bufio.Reader) {
	t.Helper()
	cmd := exec.CommandContext(testContext(t), path, "testdata/plain.py", role, network, addr, string(testKey))
	cmd.Stderr, cmd.Env = os.Stderr, pythonEnv()
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	return bufio.NewReader(pipe)
}

func plainClient(t *testing.T, path, network string) {
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = filepath.Join(t.TempDir(), "socket")
	}
	l, err := Listen(network, addr, Options{AuthKey: testKey})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	startPlain(t, path, "client", network, l.Addr())
	c, err := l.Accept(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	plainTalk(t, c)
}

func plainServer(t *testing.T, path, network string) {
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = filepath.Join(t.TempDir(), "socket")
	}
	line, err := startPlain(t, path, "server", network, addr).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	c, err := Dial(testContext(t), network, strings.TrimSpace(line), Options{AuthKey: testKey})
	if err != nil {
		t.Fatal(err)
	}
	plainTalk(t, c)
}

// plainTalk is the other side of plain.py's serve.
func plainTalk(t *testing.T, c *Conn) {
	defer c.Close()
	ctx := testContext(t)
	must := func(v any, err error) any {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := must(c.Recv(ctx)).(Tuple); len(v) != 2 || v[0] != int64(3) {
		t.Fatalf("version %v", v)
	}
	v := must(c.Recv(ctx)).(Tuple)
	pipe := v[0].(*Conn)
	defer pipe.Close()
	d := v[1].(*Dict)
	if big, _ := d.Get("big"); fmt.Sprint(big) != "-"+fmt.Sprint(bigOne(200)) {
		t.Errorf("big: %v", big)
	}
	if set, _ := d.Get("set"); !set.(*Set).Has(2) || set.(*Set).Frozen {
		t.Errorf("set: %v", set)
	}
	if err := pipe.Send(ctx, 21); err != nil {
		t.Fatal(err)
	}
	if v := must(pipe.Recv(ctx)); v != int64(42) {
		t.Errorf("through the pipe: %v", v)
	}
	f := must(sys.Memfd("note")).(*os.File)
	defer f.Close()
	f.WriteString("hello")
	f.Seek(0, io.SeekStart)
	if err := c.Send(ctx, Tuple{map[string]any{"k": []int{1}}, f}); err != nil {
		t.Fatal(err)
	}
	got := must(c.Recv(ctx)).(Tuple)
	var back map[string][]int
	if err := assign(&back, got[0]); err != nil || back["k"][0] != 1 || string(got[1].([]byte)) != "hello" {
		t.Errorf("back came %v, %v", got, err)
	}
	if b, err := c.RecvBytes(ctx); err != nil || string(b) != strings.Repeat("raw", 10000) {
		t.Errorf("%d raw bytes, %v", len(b), err)
	}
	if err := c.SendBytes(ctx, []byte("end")); err != nil {
		t.Fatal(err)
	}
}
