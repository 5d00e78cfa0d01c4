package devicetest_test

import (
	"testing"

	"github.com/shoal-mp/shoal/internal/devicetest"
)

func TestDevice_ComputesAsTheHost(t *testing.T) { devicetest.Conform(t, devicetest.New("test:0")) }

// The numbers are those of the authors' kat_vectors.
func TestPhilox_HasTheNumbersOfItsPaper(t *testing.T) {
	const all = 0xffffffff
	for _, c := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{want: [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{all, all, all, all}, [2]uint32{all, all}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := devicetest.Philox(c.counter, c.key); got != c.want {
			t.Errorf("%x with key %x: %x, want %x", c.counter, c.key, got, c.want)
		}
	}
}
