package kernel_test

import (
	"fmt"

	"github.com/shoal-mp/shoal/internal/kernel"
)

func ExampleConv2d() {
	s := kernel.ConvShape{N: 1, C: 1, H: 3, W: 3, OutC: 1, KH: 2, KW: 2, StrideH: 1, StrideW: 1}
	x := []float32{1, 2, 3, 4, 5, 6, 7, 8, 9}
	diagonal, bias := []float32{1, 0, 0, 1}, []float32{10}
	y := make([]float32, s.N*s.OutC*s.OutH()*s.OutW())
	var scratch kernel.Scratch // kept for the next call
	kernel.Conv2d(s, x, diagonal, bias, y, &scratch)
	fmt.Println(y)
	// Output: [16 18 22 24]
}
