package kernel_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/shoal-mp/shoal/internal/kernel"
)

// Each cast is done as Go does it, for numbers of all sizes; those of half precision are compared
// in package tensor, which can do without the kernel.
func TestCasts(t *testing.T) {
	onEachLevel(t, func(t *testing.T) {
		values := []float64{0, math.Copysign(0, -1), 1, -1.5, 255, 1 << 24, 1<<24 + 1, 1e-40, -1e300,
			math.Inf(1), math.Inf(-1), math.NaN(), math.Pi}
		for n := range 40 {
			var bytes, ints, longs, singles, doubles []byte
			for i := range n {
				v := values[i%len(values)]
				bytes = append(bytes, byte(37*i))
				ints = binary.LittleEndian.AppendUint32(ints, uint32(i)*0x9e3779b9)
				singles = binary.LittleEndian.AppendUint32(singles, math.Float32bits(float32(v)))
				longs = binary.LittleEndian.AppendUint64(longs, uint64(i)*0x9e3779b97f4a7c15>>(i%64))
				doubles = binary.LittleEndian.AppendUint64(doubles, math.Float64bits(v))
			}
			for name, c := range map[string]struct {
				cast kernel.Cast
				src  []byte
				size int // of a result
				want func(i int) float64
			}{
				"uint8": {kernel.Uint8ToFloat32, bytes, 4, func(i int) float64 { return float64(bytes[i]) }},
				"int32": {kernel.Int32ToFloat32, ints, 4,
					func(i int) float64 { return float64(float32(int32(binary.LittleEndian.Uint32(ints[4*i:])))) }},
				"float32": {kernel.Float32ToFloat64, singles, 8,
					func(i int) float64 { return float64(float32(values[i%len(values)])) }},
				"int64": {kernel.Float32ToInt64, singles, 8, func(i int) float64 {
					// Of what is out of range the instruction makes the least number, as Go does.
					return math.Float64frombits(uint64(int64(float32(values[i%len(values)]))))
				}},
				"int64 to float32": {kernel.Int64ToFloat32, longs, 4,
					func(i int) float64 { return float64(float32(int64(binary.LittleEndian.Uint64(longs[8*i:])))) }},
				"float64": {kernel.Float64ToFloat32, doubles, 4,
					func(i int) float64 { return float64(float32(values[i%len(values)])) }},
			} {
				dst := make([]byte, n*c.size+1)
				dst[n*c.size] = 0xa5
				done := c.cast.Do(n, dst, c.src)
				if done != 0 && done != n&^7 || dst[n*c.size] != 0xa5 {
					t.Fatalf("%s: %d of %d done, %x behind them", name, done, n, dst[n*c.size])
				}
				for i := range done {
					got := float64(math.Float32frombits(binary.LittleEndian.Uint32(dst[c.size*i:])))
					if c.size == 8 {
						got = math.Float64frombits(binary.LittleEndian.Uint64(dst[8*i:]))
					}
					if want := c.want(i); math.Float64bits(got) != math.Float64bits(want) &&
						(got == got || want == want) {
						t.Errorf("%s %d: %v, want %v", name, i, got, want)
					}
				}
			}
		}
	})
}
