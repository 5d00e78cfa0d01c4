package hdf5

import (
	"encoding/binary"
	"math/bits"
)

// lookup3 returns the lookup3 hash by Bob Jenkins, which HDF5 uses as the checksum of its metadata.
func lookup3(b []byte) uint32 {
	a := 0xdeadbeef + uint32(len(b))
	x, y, z := a, a, a
	if len(b) == 0 {
		return z
	}
	for len(b) > 12 {
		x += binary.LittleEndian.Uint32(b)
		y += binary.LittleEndian.Uint32(b[4:])
		z += binary.LittleEndian.Uint32(b[8:])
		x, y, z = mixWords(x, y, z)
		b = b[12:]
	}
	var last [12]byte
	copy(last[:], b)
	x += binary.LittleEndian.Uint32(last[:])
	y += binary.LittleEndian.Uint32(last[4:])
	z += binary.LittleEndian.Uint32(last[8:])
	for _, s := range [...]int{14, 11, 25, 16, 4, 14, 24} {
		z ^= y
		z -= bits.RotateLeft32(y, s)
		x, y, z = y, z, x
	}
	return y
}

func mixWords(x, y, z uint32) (uint32, uint32, uint32) {
	for _, s := range [...]int{4, 6, 8, 16, 19, 4} {
		x -= z
		x ^= bits.RotateLeft32(z, s)
		z += y
		x, y, z = y, z, x
	}
	return x, y, z
}
