package datasets

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/shoal-mp/shoal/internal/safefile"
)

// maxWindow limits the memory of a zstd decoder to the default window of "zstd --long".
const maxWindow = 128 << 20

// A shardFile is a tar file, which may be compressed, opened for sequential reading.
type shardFile struct {
	counter
	path  string
	file  *os.File
	plain bool   // not compressed
	end   func() // closes the decompressor
}

// openShard opens a tar file. Compression is detected from the content, not from the name. The
// caller must close the result. The error wraps [safefile.ErrPointer] if the file is a pointer
// of Git LFS instead of the tar file itself.
func openShard(path string) (*shardFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("shard: %w", err)
	}
	in := bufio.NewReaderSize(f, 1<<16)
	s := &shardFile{counter: counter{r: in}, path: path, file: f, end: func() {}}
	magic, _ := in.Peek(4)
	if start, _ := in.Peek(1024); safefile.IsPointer(start) {
		f.Close()
		return nil, fmt.Errorf("shard %s: %w", path, safefile.ErrPointer)
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		s.r, err = gzip.NewReader(in)
	case bytes.HasPrefix(magic, []byte("BZh")):
		s.r = bzip2.NewReader(in)
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		var z *zstd.Decoder
		z, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err == nil {
			s.r, s.end = z, z.Close
		}
	default:
		s.plain = true
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("shard %s: %w", path, err)
	}
	return s, nil
}

// Close closes the file and frees the decompressor.
func (s *shardFile) Close() error {
	s.end()
	return s.file.Close()
}

// A shardIndex locates the files of a shard, to resolve links. It is made by indexShard and not
// modified afterwards.
type shardIndex struct {
	files map[string]fileRange // by clean path
	links map[string]string    // clean path of the target
}

// A fileRange is the range of a file's content in the unpacked archive.
type fileRange struct{ offset, size int64 }

// maxHops is the maximum length of a chain of links.
const maxHops = 16

// indexShard reads the headers of the shard at path and returns its index. The error wraps
// [ErrTar] or [data.ErrTruncated] for a damaged file.
func indexShard(path string) (*shardIndex, error) {
	f, err := openShard(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	x := &shardIndex{map[string]fileRange{}, map[string]string{}}
	t := tarball{r: f}
	for {
		e, err := t.nextEntry()
		if err == io.EOF {
			return x, nil
		}
		if err != nil {
			return nil, err
		}
		switch {
		case e.isRegular():
			x.files[cleanName(e.name)] = fileRange{f.n, e.size}
		case e.linkTarget() != "":
			x.links[cleanName(e.name)] = e.linkTarget()
		}
	}
}

// find returns the range of the content of the file target, a clean path, or of the file that it
// links to. ok is false if that file is not in the shard, or after more than maxHops links.
func (x *shardIndex) find(target string) (r fileRange, ok bool) {
	for range maxHops {
		if r, ok = x.files[target]; ok {
			return r, true
		}
		if target, ok = x.links[target]; !ok {
			break
		}
	}
	return r, false
}

// read returns the content of a file in the shard at path, which it opens and reads from the
// start if it is compressed. If the shard is too short, the error wraps [data.ErrTruncated],
// [io.EOF] or [io.ErrUnexpectedEOF].
func (r fileRange) read(path string) ([]byte, error) {
	f, err := openShard(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.plain {
		return readAll(io.NewSectionReader(f.file, r.offset, r.size), r.size)
	}
	if err := skipTo(&f.counter, r.offset); err != nil {
		return nil, err
	}
	return readAll(f, r.size)
}

func cleanName(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

// linkTarget returns the clean path of a link's target in the archive. It returns "" for entries
// that are not links, and for links out of the archive.
func (e tarEntry) linkTarget() string {
	to := e.link
	switch e.kind {
	case '1': // a hard link: the path of an earlier file
	case '2':
		if strings.HasPrefix(to, "/") {
			return ""
		}
		to = path.Join(path.Dir(e.name), to)
	default:
		return ""
	}
	if to = path.Clean(to); to == ".." || strings.HasPrefix(to, "../") || strings.HasPrefix(to, "/") {
		return ""
	}
	return cleanName(to)
}
