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

// maxWindow bounds the memory of a zstd decoder: the window that "zstd --long" needs at its
// default.
const maxWindow = 128 << 20

// A shardFile is a tar file, perhaps compressed, that is read from its beginning.
type shardFile struct {
	counter
	path  string
	file  *os.File
	plain bool   // not compressed
	end   func() // of the decompressor
}

// openShard opens a tar file. The content says how it is compressed, not the name.
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

// Close closes the file.
func (s *shardFile) Close() error {
	s.end()
	return s.file.Close()
}

// A shardIndex has the places of the files of a shard, for links.
type shardIndex struct {
	files map[string]fileRange // by clean path
	links map[string]string    // clean path of the target
}

// A fileRange is the place of a file's content in the unpacked archive.
type fileRange struct{ offset, size int64 }

// maxHops bounds how many links lead to one file.
const maxHops = 16

// indexShard reads the headers of a shard.
func indexShard(path string) (*shardIndex, error) {
	f, err := openShard(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	x := &shardIndex{map[string]fileRange{}, map[string]string{}}
	t := tarball{r: f}
	for {
		e, err := t.next()
		if err == io.EOF {
			return x, nil
		}
		if err != nil {
			return nil, err
		}
		switch {
		case e.regular():
			x.files[cleanName(e.name)] = fileRange{f.n, e.size}
		case e.target() != "":
			x.links[cleanName(e.name)] = e.target()
		}
	}
}

// find returns the place of the file that a link leads to. ok is false if it is not in the shard.
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

// read returns the content of a file of the shard.
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

// target returns the clean path of the file in the archive that a link leads to, and an empty
// string for other entries and for links that lead out of the archive.
func (e tarEntry) target() string {
	to := e.link
	switch e.kind {
	case '1': // a hard link: the path of a file before
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
