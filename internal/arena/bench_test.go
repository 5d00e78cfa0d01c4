package arena_test

import (
	"context"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
)

// BenchmarkLife is the whole life of a block in one process: allocated, sent, received, released;
// and its parts.
func BenchmarkLife(b *testing.B) {
	d, err := arena.New(arena.Options{Budget: 64 << 20})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	r, s, v, err := d.NewRing(arena.RingOptions{Capacity: 8})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { d.Release(s); d.Release(v); r.Close() }()
	ctx := context.Background()
	alloc := func() arena.Handle {
		h, err := d.Alloc(1 << 10)
		if err != nil {
			b.Fatal(err)
		}
		return h
	}
	release := func(h arena.Handle) {
		if err := d.Release(h); err != nil {
			b.Fatal(err)
		}
	}
	pass := func(m *arena.Message, body []byte, move bool) {
		if err := r.Put(ctx, body, m.Blocks, move); err != nil {
			b.Fatal(err)
		}
		if err := r.Get(ctx, m); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("whole", func(b *testing.B) {
		var m arena.Message
		for b.Loop() {
			m.Blocks = append(m.Blocks[:0], alloc())
			pass(&m, nil, true)
			release(m.Blocks[0])
		}
	})
	b.Run("alloc-release", func(b *testing.B) {
		for b.Loop() {
			release(alloc())
		}
	})
	b.Run("put-get", func(b *testing.B) {
		m := arena.Message{Blocks: []arena.Handle{alloc()}}
		for b.Loop() {
			pass(&m, nil, true)
		}
		release(m.Blocks[0])
	})
	b.Run("put-get-nothing", func(b *testing.B) {
		var m arena.Message
		body := make([]byte, 8)
		for b.Loop() {
			pass(&m, body, false)
		}
	})
}
