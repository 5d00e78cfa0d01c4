package shm_test

import (
	"context"
	"testing"

	"github.com/shoal-mp/shoal/internal/shm"
)

// BenchmarkLife is the whole life of a block in one process: allocated, sent, received, released;
// and its parts.
func BenchmarkLife(b *testing.B) {
	d, err := shm.New(shm.Options{Budget: 64 << 20})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	r, s, v, err := d.NewRing(shm.RingOptions{Capacity: 8})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { d.Release(s); d.Release(v); r.Close() }()
	ctx := context.Background()
	alloc := func() shm.Handle {
		h, err := d.Alloc(1 << 10)
		if err != nil {
			b.Fatal(err)
		}
		return h
	}
	release := func(h shm.Handle) {
		if err := d.Release(h); err != nil {
			b.Fatal(err)
		}
	}
	pass := func(m *shm.Message, body []byte, move bool) {
		if err := r.Put(ctx, body, m.Blocks, move); err != nil {
			b.Fatal(err)
		}
		if err := r.Get(ctx, m); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("whole", func(b *testing.B) {
		var m shm.Message
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
		m := shm.Message{Blocks: []shm.Handle{alloc()}}
		for b.Loop() {
			pass(&m, nil, true)
		}
		release(m.Blocks[0])
	})
	b.Run("put-get-nothing", func(b *testing.B) {
		var m shm.Message
		body := make([]byte, 8)
		for b.Loop() {
			pass(&m, body, false)
		}
	})
}
