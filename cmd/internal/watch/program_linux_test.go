package watch_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/cmd/internal/domains"
	"github.com/shoal-mp/shoal/cmd/internal/watch"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
)

const held = 3 << 20 // bytes

// holder takes a block and keeps it until it is told to end.
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
	<-ctx.Done()
	return nil
})

func TestAProgramComesAndItsWorkerGoes(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	s, _ := serve(t, watch.Options{Every: 1e7}, new(domains.Watcher).Look)
	p := follow(t, s)
	ready, err := ipc.NewQueue[int](1)
	if err != nil {
		t.Fatal(err)
	}
	defer ready.Close()
	g := shoal.NewGroup(ctx, shoal.Options{})
	defer g.Close()
	holder.Go(g, ready.Sender())
	if _, err := ready.Get(ctx); err != nil {
		t.Fatal(err)
	}
	for !hasWorker(t, next(t, p, "moment")) {
	}
	g.Close()
	for hasWorker(t, next(t, p, "moment")) {
	}
}

// hasWorker reports whether a moment has a worker that holds the block.
func hasWorker(t *testing.T, e event) bool {
	t.Helper()
	var c domains.Census
	if err := json.Unmarshal([]byte(e.data), &c); err != nil {
		t.Fatal(err)
	}
	for _, d := range c.Domains {
		for _, p := range d.Processes {
			if p.Name == "holder 0" && p.Holds >= held {
				return true
			}
		}
	}
	return false
}
