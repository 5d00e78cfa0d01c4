package jsonl

import (
	"bufio"
	"bytes"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/shoal-mp/shoal/internal/sys"
)

// maxWindow limits the memory of a zstd decoder.
const maxWindow = 128 << 20

// openUnpacked returns f, or, if it is compressed with gzip or zstd, an unlinked temporary file
// with its decompressed content. Lines are read in any order, so the content must be seekable.
// The caller must close the result. Unless f is returned, openUnpacked closes it, also if there
// is an error.
func openUnpacked(f *os.File) (_ *os.File, err error) {
	start := make([]byte, 4)
	n, _ := f.ReadAt(start, 0)
	var in io.Reader
	switch start = start[:n]; {
	case bytes.HasPrefix(start, []byte{0x1f, 0x8b}):
		in, err = gzip.NewReader(bufio.NewReaderSize(f, 1<<16))
	case bytes.Equal(start, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		var z *zstd.Decoder
		z, err = zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err == nil {
			defer z.Close()
			in = z
		}
	default:
		return f, nil
	}
	defer f.Close()
	if err != nil {
		return nil, err
	}
	out, err := os.CreateTemp("", "shoal-jsonl-")
	if err != nil {
		return nil, err
	}
	if err = os.Remove(out.Name()); err == nil {
		err = unpack(out, in)
	}
	if err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

// unpack copies the decompressed content in to out, and rewinds out. It returns an error if the
// file would exceed the file size limit of the process.
func unpack(out *os.File, in io.Reader) error {
	buffer, size := make([]byte, 1<<18), int64(0)
	for {
		n, err := in.Read(buffer)
		if size += int64(n); n > 0 {
			if err := sys.CheckFileSize(size); err != nil {
				return err
			}
			if _, err := out.Write(buffer[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	_, err := out.Seek(0, io.SeekStart)
	return err
}
