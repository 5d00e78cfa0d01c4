package datasets

import (
	"encoding/binary"
	"hash/crc32"
	"io"

	"github.com/shoal-mp/shoal/tensor"
)

// ReadIDX reads the IDX file r of size bytes.
func ReadIDX(r io.Reader, size int64) (*tensor.Tensor, error) {
	t, _, err := readIDX(r, size)
	return t, err
}

// Resum corrects the checksum of records.
func Resum(b []byte) []byte {
	if len(b) >= recordsHead {
		if end := binary.LittleEndian.Uint64(b[24:]); end >= recordsHead && end <= uint64(len(b)) {
			binary.LittleEndian.PutUint32(b[32:], crc32.Checksum(b[recordsHead:end], castagnoli()))
		}
	}
	return b
}
