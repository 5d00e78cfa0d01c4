package datasets

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/tensor"
)

// gzipMagic is the prefix of a gzip file. Compression is detected from it, not from the name.
const gzipMagic = "\x1f\x8b"

// maxBytes bounds the product of the dimensions of an empty tensor, which the file size does not
// bound.
const maxBytes = 1 << 46

// An element is a dtype of IDX files. Elements are big-endian.
type element struct {
	dtype  tensor.DType
	size   int64
	decode func(raw []byte, shape []int) (*tensor.Tensor, error)
}

// elements is keyed by the third byte of the magic number.
var elements = map[byte]element{
	0x08: {tensor.Uint8, 1, func(raw []byte, shape []int) (*tensor.Tensor,
		error) {
		return tensor.FromSlice(raw, shape...), nil
	}},
	0x09: {tensor.Int8, 1, decode[int8]},
	0x0B: {tensor.Int16, 2, decode[int16]},
	0x0C: {tensor.Int32, 4, decode[int32]},
	0x0D: {tensor.Float32, 4, decode[float32]},
	0x0E: {tensor.Float64, 8, decode[float64]},
}

func decode[T int8 | int16 | int32 | float32 | float64](raw []byte, shape []int) (*tensor.Tensor, error) {
	values := make([]T, len(raw)/binary.Size(T(0)))
	if _, err := binary.Decode(raw, binary.BigEndian, values); err != nil {
		return nil, err
	}
	return tensor.FromSlice(values, shape...), nil
}

// OpenIDX reads an IDX file, the format of MNIST, into a tensor on the heap. The file may be
// gzipped and may have any of the six dtypes of the format. The caller must close the tensor. If
// the file contradicts its header, the error is an [*encoding.FileError] that wraps [ErrMagic],
// [data.ErrTruncated] or [data.ErrTrailing]. OpenIDX never allocates more memory than a file of
// this length can fill or than the process may allocate. A gzipped file may unpack to 1 GiB, or to
// 100 times its length if that is more; otherwise the error wraps [ErrLimit].
func OpenIDX(path string) (*tensor.Tensor, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read IDX file: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read IDX file: %w", err)
	}
	t, offset, err := readIDX(f, st.Size())
	if err != nil {
		return nil, &encoding.FileError{Path: path, Offset: offset, Err: withRemedy(err)}
	}
	return t, nil
}

// withRemedy adds a remedy to the error for a damaged file. It returns err itself if it wraps
// [ErrLimit].
func withRemedy(err error) error {
	if errors.Is(err, ErrLimit) {
		return err
	}
	return fmt.Errorf("%w; download the file again", err)
}

// readIDX reads the IDX file r, which may be compressed and has size bytes as it is stored.
// offset is the number of decompressed bytes that were read. The error wraps one of the errors
// of [OpenIDX].
func readIDX(r io.Reader, size int64) (t *tensor.Tensor, offset int64, err error) {
	in := bufio.NewReader(r)
	most, fills := size, size
	if magic, _ := in.Peek(len(gzipMagic)); string(magic) == gzipMagic {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, 0, truncatedError(err)
		}
		in, most = bufio.NewReader(z), saturatedProduct(size, safefile.MaxDeflateRatio)
		fills = safefile.InflatedSize(size)
	}
	f := idxFile{r: in, most: most, fills: fills}
	t, err = f.read()
	return t, f.offset, err
}

// An idxFile is a decompressed IDX file that is being read.
type idxFile struct {
	r      io.Reader
	most   int64 // bytes that it can contain, by its format
	fills  int64 // bytes that it may contain, by the memory limit
	offset int64 // bytes that were read
}

// read reads the file into a tensor, which the caller must close. The error wraps one of the
// errors of [OpenIDX]. The header consists of
//
//	0  0 0        always
//	2  dtype      0x08 … 0x0E
//	3  n          number of dimensions
//	4  n × uint32 dimensions
//
// and is followed by the elements, with the last dimension varying fastest.
func (f *idxFile) read() (*tensor.Tensor, error) {
	var magic [4]byte
	if err := f.fill(magic[:]); err != nil {
		return nil, err
	}
	e, known := elements[magic[2]]
	if magic[0] != 0 || magic[1] != 0 || !known {
		f.offset = 0
		return nil, fmt.Errorf("%w: got magic number %#08x", ErrMagic, magic)
	}
	shape, bytes, err := f.shape(int(magic[3]), e.size)
	if err != nil {
		return nil, err
	}
	raw, err := readAll(f, bytes)
	if err != nil {
		return nil, truncatedError(err)
	}
	if err := f.checkEnd(); err != nil {
		return nil, err
	}
	return e.decode(raw, shape)
}

// shape reads dims dimensions. bytes is the size of all elements, which have size bytes each.
// The error wraps [data.ErrTruncated] if the file cannot contain them, and [ErrLimit] if they
// exceed the memory limit.
func (f *idxFile) shape(dims int, size int64) (shape []int, bytes int64, err error) {
	bytes = size
	empty := false
	for range dims {
		var word [4]byte
		if err := f.fill(word[:]); err != nil {
			return nil, 0, err
		}
		n := int64(binary.BigEndian.Uint32(word[:]))
		shape = append(shape, int(n))
		if n == 0 {
			empty = true
			continue
		}
		bytes = saturatedProduct(bytes, n)
	}
	if bytes > f.most && !empty || bytes > maxBytes {
		return nil, 0, fmt.Errorf("%w: file is too short for the %v elements of its header", data.ErrTruncated, shape)
	}
	if empty {
		return shape, 0, nil
	}
	return shape, bytes, safefile.CheckSize(bytes, f.fills, 0, "decompress it with gunzip if this is intended")
}

// fill reads len(p) bytes. It returns [data.ErrTruncated] if the file ends before.
func (f *idxFile) fill(p []byte) error {
	_, err := io.ReadFull(f, p)
	return truncatedError(err)
}

// Read implements [io.Reader] and counts the bytes.
func (f *idxFile) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	f.offset += int64(n)
	return n, err
}

// checkEnd returns [data.ErrTrailing] unless the file ends here. For a compressed file it also
// verifies the checksum.
func (f *idxFile) checkEnd() error {
	switch _, err := io.ReadFull(f.r, make([]byte, 1)); err {
	case io.EOF:
		return nil
	case nil:
		return data.ErrTrailing
	default:
		return truncatedError(err)
	}
}

// truncatedError converts errors that wrap [io.EOF] or [io.ErrUnexpectedEOF] to
// [data.ErrTruncated], and returns others unchanged, nil included.
func truncatedError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return data.ErrTruncated
	}
	return err
}

// saturatedProduct returns a·b, or [math.MaxInt64] on overflow. a and b must not be negative.
func saturatedProduct(a, b int64) int64 {
	if b != 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}
