package ipc_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/test/testutil"
)

// jobEnv is set in the processes that tests start: the test binary plays a worker then.
const jobEnv = "SHOAL_IPC_TEST_JOB"

// A job is what a worker is to do: the argument's bytes, and the blocks that the bytes refer to.
type job struct {
	Role   string
	Body   string
	Blocks []uint64
}

// roles are the functions that workers run, by name.
var roles = map[string]func(ctx context.Context, m codec.Message) error{}

// A role is a function that runs in a worker. Values of this type are package-level variables.
type role[A any] struct{ name string }

func newRole[A any](name string, f func(ctx context.Context, arg A) error) role[A] {
	if roles[name] != nil {
		panic("two roles of one name: " + name)
	}
	roles[name] = func(ctx context.Context, m codec.Message) error {
		arg, err := decodeArg[A](m)
		if err != nil {
			return err
		}
		if err := os.NewFile(5, "ready").Close(); err != nil {
			return err
		}
		return f(ctx, arg)
	}
	return role[A]{name}
}

// importer takes blocks whose handles came from the parent, which holds them.
type importer struct {
	d     *arena.Domain
	table []arena.Handle
}

func (i importer) Take(n int) (arena.Handle, error) { return i.table[n], i.d.Import(i.table[n]) }

func decodeArg[A any](m codec.Message) (arg A, err error) {
	d, err := arena.Default()
	if err != nil {
		return arg, err
	}
	plan, err := codec.PlanOf[A]()
	if err != nil {
		return arg, err
	}
	var dec codec.Decoder
	dec.Reset(m, importer{d, m.Blocks})
	arg, err = plan.Decode(&dec)
	dec.Done(err == nil)
	return arg, err
}

// start starts a worker in a process and returns when the worker has arg, which stays the caller's.
// The worker is killed when the test is over.
func (r role[A]) start(t testing.TB, d *arena.Domain, arg A) *exec.Cmd {
	t.Helper()
	return r.startSaying(t, d, arg, os.Stderr)
}

// startSaying is start with somewhere for the worker's output.
func (r role[A]) startSaying(t testing.TB, d *arena.Domain, arg A, out io.Writer) *exec.Cmd {
	t.Helper()
	plan, err := codec.PlanOf[A]()
	if err != nil {
		t.Fatal(err)
	}
	var enc codec.Encoder
	enc.Reset(nil)
	err = plan.Encode(&enc, arg)
	m := enc.Message()
	j := job{Role: r.name, Body: hex.EncodeToString(m.Body)}
	for _, h := range m.Blocks {
		j.Blocks = append(j.Blocks, uint64(h))
	}
	enc.Done(err == nil)
	text, jerr := json.Marshal(j)
	if err := errors.Join(err, jerr); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), jobEnv+"="+string(text), "GORACE=atexit_sleep_ms=0")
	cmd.Stdout, cmd.Stderr = out, out
	ready, child, err := os.Pipe()
	testutil.NoError(t, err)
	defer ready.Close()
	cmd.ExtraFiles = append(d.Files(), child)
	testutil.NoError(t, cmd.Start())
	testutil.NoError(t, child.Close())
	_, err = io.Copy(io.Discard, ready) // until the worker closes its side
	testutil.NoError(t, err)
	return cmd
}

func TestMain(m *testing.M) {
	if text := os.Getenv(jobEnv); text != "" {
		if err := work(text); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	shoaltest.TestMain(m)
}

func work(text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	d, err := arena.Attach(os.NewFile(3, "control"), os.NewFile(4, "data"))
	if err != nil {
		return err
	}
	arena.SetDefault(d)
	m := codec.Message{}
	if m.Body, err = hex.DecodeString(j.Body); err != nil {
		return err
	}
	for _, h := range j.Blocks {
		m.Blocks = append(m.Blocks, arena.Handle(h))
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Minute, errors.New("the worker hangs"))
	defer cancel()
	return errors.Join(roles[j.Role](ctx, m), d.Close())
}

// settled waits while another goroutine is still taking back what the dead held.
func settled(t testing.TB, d *arena.Domain) {
	t.Helper()
	testutil.EventuallyNoError(t, func() error {
		if s := d.Stats(); s.Blocks != 0 || s.InTransit != 0 {
			return fmt.Errorf("%d blocks are left, and %d references in messages", s.Blocks, s.InTransit)
		}
		return nil
	})
}

// use makes d the domain of the test. At its end nothing may be left in it, whoever was killed.
func use(t testing.TB, d *arena.Domain, err error) *arena.Domain {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	arena.SetDefault(d)
	t.Cleanup(func() {
		testutil.Eventually(t, func() bool {
			if d.Stats().Participants <= 1 {
				return true
			}
			_, err := d.Reap()
			testutil.NoError(t, err)
			return false
		}, "participants are left")
		settled(t, d)
		arena.SetDefault(nil)
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// shared makes a domain that other processes can join.
func shared(t testing.TB) *arena.Domain {
	t.Helper()
	d, err := arena.New(arena.Options{Budget: 256 << 20})
	return use(t, d, err)
}

// local makes a domain that the race detector sees.
func local(t testing.TB) *arena.Domain {
	t.Helper()
	d, err := arena.NewLocal(16 << 20)
	return use(t, d, err)
}

// each runs a test in both sorts of domain.
func each(t *testing.T, f func(t *testing.T, d *arena.Domain)) {
	t.Helper()
	t.Run("local", func(t *testing.T) { f(t, local(t)) })
	t.Run("shared", func(t *testing.T) { f(t, shared(t)) })
}

// A blob is a block that travels, as a tensor does.
type blob struct{ h arena.Handle }

func newBlob(t testing.TB, d *arena.Domain, text string) *blob {
	t.Helper()
	b, err := makeBlob(d, text)
	testutil.NoError(t, err)
	return b
}

func makeBlob(d *arena.Domain, text string) (*blob, error) {
	h, err := d.Alloc(max(len(text), 1))
	if err != nil {
		return nil, err
	}
	b := &blob{h}
	copy(b.bytes(), text)
	return b, nil
}

func (b *blob) bytes() []byte {
	d, err := arena.Default()
	if err != nil {
		panic(err)
	}
	p, err := d.Bytes(b.h)
	if err != nil {
		panic(err)
	}
	return p
}

func (b *blob) Close() error {
	d, err := arena.Default()
	if err != nil {
		return err
	}
	return d.Release(b.h)
}

func (b *blob) MarshalWire(e *codec.Encoder) error {
	e.Block(b.h)
	return nil
}

func (b *blob) UnmarshalWire(d *codec.Decoder) (err error) {
	if b.h, err = d.Block(); err != nil {
		return err
	}
	d.OnDone(codec.WatcherFunc(func(kept bool) {
		if !kept {
			b.Close()
		}
	}))
	return nil
}

func wait(t *testing.T, cmds ...*exec.Cmd) {
	t.Helper()
	for _, c := range cmds {
		if err := c.Wait(); err != nil {
			t.Errorf("a worker: %v", err)
		}
	}
}
