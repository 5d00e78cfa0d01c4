package manager_test

import (
	"testing"

	"github.com/shoal-mp/shoal/manager"
)

func BenchmarkCall(b *testing.B) {
	for name, start := range map[string]func(testing.TB) *manager.Manager{"local": local, "process": process} {
		b.Run(name, func(b *testing.B) {
			ctx, m := b.Context(), start(b)
			l, err := manager.NewList(ctx, m, 1)
			closing(b, l, err)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := l.Get(ctx, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	ctx, m := b.Context(), process(b)
	v, err := manager.NewValue(ctx, m, 1)
	closing(b, v, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Get(ctx); err != nil {
			b.Fatal(err)
		}
	}
}
