package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/cmd/internal/words"
	"github.com/shoal-mp/shoal/encoding/npy"
	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/encoding/safetensors"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

// hostile clears the screen and forges a line. It has the 15 bytes that the kernel keeps.
const hostile = "\x1b[2J\x1b[H\nroot\t\r\x9b"

// linger keeps its program visible until the group ends.
var linger = shoal.Register("linger", func(ctx context.Context, _ int, ready *ipc.Sender[int]) error {
	if err := ready.Put(ctx, os.Getpid()); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
})

// shoalSays runs the command, and returns what it wrote.
func shoalSays(t *testing.T, args ...string) (out, errs string, err error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var o, e bytes.Buffer
	c := exec.Cmd{Path: self, Args: append([]string{"shoal"}, args...), Stdout: &o, Stderr: &e}
	late := time.AfterFunc(time.Minute, func() { c.Process.Kill() })
	defer late.Stop()
	err = c.Run()
	return o.String(), e.String(), err
}

// tame fails where a text for people moves the cursor, or has a line that a name began.
func tame(t *testing.T, what, text string) {
	t.Helper()
	for l := range strings.Lines(text) {
		l = strings.TrimSuffix(l, "\n")
		if i := strings.IndexFunc(l, unicode.IsControl); i >= 0 {
			t.Errorf("%s: %q moves the cursor", what, l)
		}
		if strings.HasPrefix(l, "root") {
			t.Errorf("%s: a name has forged the line %q", what, l)
		}
	}
}

// bound is a name that the hostile program binds.
var bound = hostile[:14] + "name"

// beHostile is a program with names of that sort. It ends with its standard input.
func beHostile() {
	shoal.Main(func(ctx context.Context) error {
		if err := os.WriteFile("/proc/self/comm", []byte(hostile), 0); err != nil {
			return err
		}
		q, err := ipc.NewQueue[int](4)
		if err != nil {
			return err
		}
		if err := ipc.Bind(ctx, bound, q.Sender()); err != nil {
			return err
		}
		g := shoal.NewGroup(ctx, shoal.Options{})
		defer g.Close()
		linger.Go(g, q.Sender())
		if _, err := q.Get(ctx); err != nil {
			return err
		}
		fmt.Println("ready")
		io.Copy(io.Discard, os.Stdin)
		return nil
	})
}

// startHostile starts that program, and returns its number.
func startHostile(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Cmd{Path: self, Args: []string{"hostile"}, Stderr: os.Stderr}
	in, err1 := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	if err := errors.Join(err1, err2, c.Start()); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(2*time.Minute, func() { c.Process.Kill() })
	t.Cleanup(func() {
		in.Close()
		if err := c.Wait(); err != nil {
			t.Errorf("the hostile program: %v", err)
		}
		late.Stop()
	})
	if l, err := bufio.NewReader(out).ReadString('\n'); l != "ready\n" {
		t.Fatalf("the hostile program says %q, %v", l, err)
	}
	return fmt.Sprint(c.Process.Pid)
}

func TestNamesOfProgramsMoveNoCursor(t *testing.T) {
	me := startHostile(t)
	for _, args := range [][]string{{"ps", "--every=20ms"}, {"top", "--every=20ms", "--count=1"},
		{"doctor", "--span=20ms"}} {
		out, errs, err := shoalSays(t, args...)
		if err != nil || !strings.Contains(out, `\x1b[2J\x1b[H\nroot\t\r`) || !strings.Contains(out, me) {
			t.Errorf("%q shows no process %s with its name: %v\n%s%s", args, me, err, out, errs)
		}
		if args[0] != "ps" && !strings.Contains(out, words.Clean(bound)) {
			t.Errorf("%q does not show the name that is bound:\n%s", args, out)
		}
		tame(t, fmt.Sprint(args), out+errs)
	}
	for _, args := range [][]string{{"ps", "--json", "--every=20ms"}, {"top", "--json", "--every=20ms", "--count=1"},
		{"doctor", "--json", "--span=20ms"}} {
		out, errs, err := shoalSays(t, args...)
		var any map[string]any
		for l := range strings.Lines(out) {
			err = errors.Join(err, json.Unmarshal([]byte(l), &any))
		}
		if err != nil || !strings.Contains(out, `\u001b[2J`) {
			t.Errorf("%q: %v\n%s%s", args, err, out, errs)
		}
		tame(t, fmt.Sprint(args), out+errs)
	}
}

func TestNamesInFilesMoveNoCursor(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	x := map[string]*tensor.Tensor{hostile[:14]: tensor.Ones(tensor.Float32, 3)}
	opts := safetensors.SaveOptions{Metadata: map[string]string{hostile[:14]: hostile[:14]}}
	if err := errors.Join(safetensors.SaveWith(at("a.safetensors"), x, opts),
		pt.Save(at("a.pt"), map[string]any{"w": tensor.Ones(tensor.Float32, 3), "other" + hostile[:14]: "text"}),
		npy.Save(at("b.npy"), tensor.Ones(tensor.Float32, 3)),
		os.WriteFile(at(hostile[:14]+".npy"), []byte("no array"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
		json bool
	}{
		{[]string{"inspect", at("a.safetensors")}, `\nroot\t\r`, false},
		{[]string{"inspect", "--json", at("a.safetensors")}, `\u001b[2J`, true},
		{[]string{"inspect", at("a.pt")}, `also value other\x1b[2J`, false},
		{[]string{"convert", at("a.safetensors"), at("c.npz")}, `omitted: metadata \x1b[2J`, false},
		{[]string{"convert", "--strict", at("a.pt"), at("c.npz")}, `other\x1b[2J`, false},
		{[]string{"inspect", at(hostile[:14] + ".npy")}, `root    \r.npy`, false},
		{[]string{"inspect", at(hostile[:14] + ".none")}, `root    \r.none`, false},
		{[]string{"hogwild", "--dry-run", "--data", at(hostile[:14])}, `root    \r or`, false},
		{[]string{hostile[:14]}, `root`, false},
		{[]string{"bench", hostile[:14]}, `root`, false},
		{[]string{"run", "--", "./" + hostile[:14]}, `root`, false},
		{[]string{"watch", hostile[:14]}, `root`, false},
	} {
		out, errs, err := shoalSays(t, c.args...)
		if !strings.Contains(out+errs, c.want) {
			t.Errorf("%q says nothing of %s: %v\n%s%s", c.args, c.want, err, out, errs)
		}
		tame(t, fmt.Sprintf("%q", c.args), out+errs)
		if c.json && !json.Valid([]byte(out)) {
			t.Errorf("%q is no JSON: %s", c.args, out)
		}
	}
}
