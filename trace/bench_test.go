package trace_test

import (
	"path/filepath"
	"testing"

	"github.com/shoal-mp/shoal/trace"
)

func BenchmarkSpan(b *testing.B) {
	for name, path := range map[string]string{"none": "", "file": filepath.Join(b.TempDir(), "t.json")} {
		b.Run(name, func(b *testing.B) {
			var t *trace.Trace
			if path != "" {
				var err error
				if t, err = trace.Create(path); err != nil {
					b.Fatal(err)
				}
				defer t.Close()
			}
			k := t.Track("bench")
			for b.Loop() {
				k.Span("span", k.Now(), k.Now())
			}
		})
	}
}
