package top_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/cmd/internal/domains"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/top"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/shoaltest"
)

func TestMain(m *testing.M) {
	play()
	shoaltest.TestMain(m)
}

const (
	watchdog = 60 * time.Second
	held     = 3 << 20 // bytes
)

// holder takes a block and allocates others until it is told to end.
var holder = shoal.Register("holder", func(ctx context.Context, _ int, ready *ipc.Sender[int]) error {
	d, err := arena.Default()
	if err != nil {
		return err
	}
	h, err := d.Alloc(held)
	if err != nil {
		return err
	}
	defer d.Release(h)
	if err := ready.Put(ctx, os.Getpid()); err != nil {
		return err
	}
	for ctx.Err() == nil {
		h, err := d.Alloc(64)
		if err != nil {
			return err
		}
		d.Release(h)
		time.Sleep(time.Millisecond)
	}
	return nil
})

func TestAWorkerIsShownWithWhatItHolds(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	ready, err := ipc.NewQueue[int](1)
	if err != nil {
		t.Fatal(err)
	}
	defer ready.Close()
	g := shoal.NewGroup(ctx, shoal.Options{})
	defer g.Close()
	holder.Go(g, ready.Sender())
	pid, err := ready.Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	loss, err := ipc.NewLatest(0.125)
	if err != nil {
		t.Fatal(err)
	}
	defer loss.Close()
	if err := ipc.Bind(ctx, "loss", loss); err != nil {
		t.Fatal(err)
	}
	defer ipc.Unlink("loss")
	var text, objects bytes.Buffer
	if err := errors.Join(
		top.Run(ctx, &text, top.Options{Every: 100 * time.Millisecond, Count: 2}),
		top.Run(ctx, &objects, top.Options{Every: 100 * time.Millisecond, Count: 2, JSON: true})); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), "holder 0"); n != 2 {
		t.Errorf("the worker is shown %d times in two pictures:\n%s", n, text.String())
	}
	if n := strings.Count(text.String(), "\nloss: 0.125\n"); n != 2 {
		t.Errorf("the number of a name is shown %d times in two pictures:\n%s", n, text.String())
	}
	if strings.Contains(text.String(), "\x1b") {
		t.Errorf("what is no terminal is told to move its cursor: %q", text.String())
	}
	lines := strings.Split(strings.TrimSpace(objects.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines for two pictures:\n%s", len(lines), objects.String())
	}
	for _, line := range lines {
		var c domains.Census
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		d, p := find(c, pid)
		if p == nil {
			t.Fatalf("no process %d in %s", pid, line)
		}
		if p.Name != "holder 0" || p.Holds < held || d.Bytes < held || d.Committed < d.Bytes ||
			d.Committed > d.Limit || d.Blocks == 0 || d.AllocsPerSecond <= 0 {
			t.Errorf("%+v of %+v", *p, *d)
		}
	}
}

func find(c domains.Census, pid int) (*domains.Domain, *domains.Process) {
	for i := range c.Domains {
		for j := range c.Domains[i].Processes {
			if p := &c.Domains[i].Processes[j]; p.PID == pid {
				return &c.Domains[i], p
			}
		}
	}
	return nil, nil
}

func TestItEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	time.AfterFunc(10*time.Millisecond, func() { cancel(enough) })
	if err := top.Run(ctx, new(bytes.Buffer), top.Options{Every: time.Hour}); !errors.Is(err, enough) &&
		!errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}
