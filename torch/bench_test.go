package torch

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/tensor"
)

// BenchmarkToTorch writes a tensor, sends it and waits until PyTorch has it. Warm memory is memory
// that PyTorch has dropped before; fresh memory is new each time.
func BenchmarkToTorch(b *testing.B) {
	if len(torchPythons()) == 0 {
		b.Skip("python3 has no PyTorch")
	}
	for _, s := range []Strategy{Proc, FileDescriptor, FileSystem} {
		k := converse(b, torchPythons()[len(torchPythons())-1], Options{Strategy: s}, "file_descriptor")
		for _, size := range []int{1 << 10, 1 << 20, 64 << 20} {
			for _, warm := range []bool{true, false} {
				b.Run(fmt.Sprintf("%v/%dKiB/warm=%v", s, size>>10, warm),
					func(b *testing.B) { toTorchBench(b, k, size, warm) })
			}
		}
	}
}

func toTorchBench(b *testing.B, k *talk, size int, warm bool) {
	var spans []time.Duration
	for b.Loop() {
		if !warm {
			if err := Trim(); err != nil {
				b.Fatal(err)
			}
		}
		began := time.Now()
		x, err := k.opts.Empty(tensor.Uint8, size)
		if err != nil {
			b.Fatal(err)
		}
		x.Fill(1)
		k.ask("hold", x)
		x.Close()
		spans = append(spans, time.Since(began))
	}
	slices.Sort(spans)
	b.ReportMetric(float64(spans[len(spans)/2].Microseconds()), "µs/median")
}

// BenchmarkFromTorch receives small tensors that PyTorch has made anew, and lets go of them.
func BenchmarkFromTorch(b *testing.B) {
	if len(torchPythons()) == 0 {
		b.Skip("python3 has no PyTorch")
	}
	for _, theirs := range []string{"fetched", "file_descriptor", "file_system"} {
		k := converse(b, torchPythons()[len(torchPythons())-1], Options{}, theirs)
		b.Run(theirs, func(b *testing.B) {
			if err := k.Send(k.ctx, python.Tuple{"flood", b.N}); err != nil {
				b.Fatal(err)
			}
			for range b.N {
				v, err := k.Recv(k.ctx)
				if err != nil {
					b.Fatal(err)
				}
				CloseAll(v)
			}
		})
	}
}
