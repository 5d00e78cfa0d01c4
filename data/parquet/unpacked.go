package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/shoal-mp/shoal/internal/safefile"
)

// errUnpacked is the error for a page that decompresses to more bytes than its header declares.
var errUnpacked = fmt.Errorf("%w: page is larger than its header declares", ErrFormat)

// checkPacked returns an error if the compressed bytes of the page at offset at decompress to
// more than its header declares. The error wraps [ErrFormat]. A page without compression is
// accepted.
func (c *column) checkPacked(h pageHeader, at int64) error {
	packed, said := h.packed, h.unpacked
	if h.v2 { // levels are not compressed
		if h.plain {
			return nil
		}
		if h.levels > packed || h.levels > said {
			return fmt.Errorf("%w: levels of %d bytes in %d", ErrFormat, h.levels, packed)
		}
		at, packed, said = at+h.levels, packed-h.levels, said-h.levels
	}
	measure := unpacked[c.codec]
	if measure == nil || packed == 0 {
		return nil // not compressed, or with a codec that the library rejects
	}
	if int64(cap(c.page)) < packed {
		c.page = make([]byte, packed)
	}
	b := c.page[:packed]
	if _, err := c.ReadAt(b, at); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return checkUnpacked(measure, b, said)
}

// checkUnpacked returns an error that wraps [ErrFormat] if b is damaged or decompresses to more
// than said bytes. measure returns its decompressed length, as the functions in unpacked do.
// Some writers declare more than the actual size; this is accepted unless the library would
// allocate implausibly much memory for it.
func checkUnpacked(measure func([]byte, int64) (int64, error), b []byte, said int64) error {
	n, err := measure(b, said)
	switch {
	case err != nil && errors.Is(err, ErrFormat):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", ErrFormat, err)
	case n > said:
		return errUnpacked
	case safefile.CheckPlausible(said, n+zstdBlock, 0, "") != nil:
		return fmt.Errorf("%w: page has %d bytes uncompressed, and its header declares %d", ErrFormat, n, said)
	}
	return nil
}

// unpacked maps a codec to a function that returns the decompressed length of b, or any length
// above said if it is longer. The functions must not allocate much more than said bytes.
var unpacked = map[compress.Compression]func(b []byte, said int64) (int64, error){
	compress.Codecs.Snappy: snappyLength,
	compress.Codecs.Lz4Raw: lz4Length,
	compress.Codecs.Zstd:   zstdLength,
	compress.Codecs.Gzip: func(b []byte, said int64) (int64, error) {
		r, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return 0, err
		}
		return drainReader(r, said)
	},
	compress.Codecs.Brotli: func(b []byte, said int64) (int64, error) {
		return drainReader(brotli.NewReader(bytes.NewReader(b)), said)
	},
}

// drainReader decompresses and discards up to said+1 bytes of r, and returns their number. The
// end of r is not an error.
func drainReader(r io.Reader, said int64) (n int64, err error) {
	if n, err = io.CopyN(io.Discard, r, said+1); err == io.EOF {
		err = nil
	}
	return n, err
}

// snappyMost and lz4Most are upper bounds of the compression ratios of Snappy and LZ4.
const snappyMost, lz4Most = 64, 256

// snappyLength returns the decompressed length that b declares, or an error if b cannot have so
// many bytes. The library allocates this much, and decompresses no more.
func snappyLength(b []byte, _ int64) (int64, error) {
	n, used := binary.Uvarint(b)
	if used <= 0 || n > uint64(len(b))*snappyMost {
		return 0, fmt.Errorf("a Snappy block of %d bytes declares %d", len(b), n)
	}
	return int64(n), nil
}

// lz4Length decompresses a block and returns its decompressed length. The library grows its
// buffer without limit for a damaged block, so blocks must be verified here. The error wraps
// [ErrFormat] for a block that is damaged or longer than said bytes.
func lz4Length(b []byte, said int64) (int64, error) {
	if said > int64(len(b))*lz4Most {
		return 0, fmt.Errorf("an LZ4 block of %d bytes cannot expand to %d", len(b), said)
	}
	n, err := lz4.UncompressBlock(b, make([]byte, said))
	if err != nil { // the error does not distinguish the two causes
		return 0, fmt.Errorf("%w, or is damaged", errUnpacked)
	}
	return int64(n), nil
}

// zstdBlock is the maximum decompressed size of a Zstandard block. zstdWindow exceeds the windows
// of all compression levels.
const zstdBlock, zstdWindow = 128 << 10, 128 << 20

// zstdLength returns an upper bound of the decompressed length of b: the sum over all frames of
// the declared size, which the library enforces, or of the blocks. If the total exceeds said, it
// decompresses the frames to measure them, up to said+1 bytes.
func zstdLength(b []byte, said int64) (total int64, err error) {
	all := b
	for len(b) > 0 {
		var h zstd.Header
		if err := h.Decode(b); err != nil {
			return 0, err
		}
		most, n, err := measureZstdFrame(b, h)
		if err != nil {
			return 0, err
		}
		if h.HasFCS {
			most = int64(min(uint64(most), h.FrameContentSize))
		}
		total += most
		b = b[n:]
	}
	if total <= said {
		return total, nil
	}
	return drainZstd(all, said)
}

func drainZstd(b []byte, said int64) (int64, error) {
	r, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(zstdWindow))
	if err != nil {
		return 0, err
	}
	defer r.Close()
	return drainReader(r, said)
}

// measureZstdFrame returns an upper bound of the decompressed size of the first frame in b, and
// its compressed length, both in bytes. h is the frame's header. It returns
// [io.ErrUnexpectedEOF] if b is too short.
func measureZstdFrame(b []byte, h zstd.Header) (most int64, n int, err error) {
	if h.Skippable {
		if int64(h.SkippableSize) > int64(len(b)-h.HeaderSize) {
			return 0, 0, io.ErrUnexpectedEOF
		}
		return 0, h.HeaderSize + int(h.SkippableSize), nil
	}
	n = h.HeaderSize
	for last := false; !last; {
		if n+3 > len(b) {
			return 0, 0, io.ErrUnexpectedEOF
		}
		head := int(b[n]) | int(b[n+1])<<8 | int(b[n+2])<<16
		last = head&1 == 1
		size := head >> 3
		n += 3
		const raw, repeated = 0, 1
		switch head >> 1 & 3 {
		case raw:
			most += int64(size)
		case repeated:
			most += int64(size)
			size = 1
		default:
			most += zstdBlock
		}
		if n += size; n > len(b) {
			return 0, 0, io.ErrUnexpectedEOF
		}
	}
	if h.HasCheckSum {
		n += 4
	}
	if n > len(b) {
		return 0, 0, io.ErrUnexpectedEOF
	}
	return most, n, nil
}
