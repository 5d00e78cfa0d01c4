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

// errUnpacked is what a page is that unpacks to more than its header says.
var errUnpacked = fmt.Errorf("%w: it unpacks to more than it says", ErrFormat)

// checkPacked returns an error if the packed bytes of a page, from a byte on, unpack to more than
// the page's header announces.
func (c *column) checkPacked(h pageHeader, at int64) error {
	packed, said := h.packed, h.unpacked
	if h.v2 { // its levels are not packed
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
		return nil // not packed, or in a way that the library refuses
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

// checkUnpacked wants as many bytes as are said; or fewer, as some writers have it, where that is
// little room for nothing.
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
		return fmt.Errorf("%w: it unpacks to %d bytes and says %d", ErrFormat, n, said)
	}
	return nil
}

// unpacked are what looks how long the bytes of each codec become, or that they become more than
// said, and makes no more room than that.
var unpacked = map[compress.Compression]func(b []byte, said int64) (int64, error){
	compress.Codecs.Snappy: snappyLength,
	compress.Codecs.Lz4Raw: lz4Length,
	compress.Codecs.Zstd:   zstdLength,
	compress.Codecs.Gzip: func(b []byte, said int64) (int64, error) {
		r, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return 0, err
		}
		return drained(r, said)
	},
	compress.Codecs.Brotli: func(b []byte, said int64) (int64, error) {
		return drained(brotli.NewReader(bytes.NewReader(b)), said)
	},
}

// drained unpacks to nowhere.
func drained(r io.Reader, said int64) (n int64, err error) {
	if n, err = io.CopyN(io.Discard, r, said+1); err == io.EOF {
		err = nil
	}
	return n, err
}

// snappyMost is more than Snappy and LZ4 make of a byte.
const snappyMost, lz4Most = 64, 256

// snappyLength reads the length that the bytes begin with, for which the library makes room, and no
// more.
func snappyLength(b []byte, _ int64) (int64, error) {
	n, used := binary.Uvarint(b)
	if used <= 0 || n > uint64(len(b))*snappyMost {
		return 0, fmt.Errorf("%d bytes of Snappy say that they are %d", len(b), n)
	}
	return int64(n), nil
}

// lz4Length unpacks a block. The library makes ever more room for one that is damaged, so it must
// not get that, and the two have to agree.
func lz4Length(b []byte, said int64) (int64, error) {
	if said > int64(len(b))*lz4Most {
		return 0, fmt.Errorf("%d bytes of LZ4 cannot be %d", len(b), said)
	}
	n, err := lz4.UncompressBlock(b, make([]byte, said))
	if err != nil { // nothing says which
		return 0, fmt.Errorf("%w, or is damaged", errUnpacked)
	}
	return int64(n), nil
}

// zstdBlock is what a block of Zstandard unpacks to at most, and zstdWindow more than its levels
// look back.
const zstdBlock, zstdWindow = 128 << 10, 128 << 20

// zstdLength adds up what frames say, to which the library holds them, and what their blocks can
// be. Where that could be too long, they are unpacked.
func zstdLength(b []byte, said int64) (total int64, err error) {
	all := b
	for len(b) > 0 {
		var h zstd.Header
		if err := h.Decode(b); err != nil {
			return 0, err
		}
		most, n, err := zstdFrame(b, h)
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
	return zstdDrained(all, said)
}

func zstdDrained(b []byte, said int64) (int64, error) {
	r, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(zstdWindow))
	if err != nil {
		return 0, err
	}
	defer r.Close()
	return drained(r, said)
}

// zstdFrame returns what the blocks of the first frame unpack to at most, and how long it is.
func zstdFrame(b []byte, h zstd.Header) (most int64, n int, err error) {
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
