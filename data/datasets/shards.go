package datasets

import (
	"context"
	"fmt"
	"io"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/encoding"
)

// A Record has the files of one sample in a shard.
type Record struct {
	Key   string            // common name of the files up to the first dot, with their directory
	Files map[string][]byte // contents by extension, such as "jpg" and "cls"; the caller may keep them
}

type shards struct {
	Paths   []string
	Decoder data.Any[Decoder]
	Options ShardOptions
}

// NewShards returns a Stream of samples in tar files, in the layout of WebDataset: consecutive
// files with the same name up to the first dot are one sample. The parts of the stream, and so
// ranks and workers, divide the shards among them. Set data.Options.Parts to the number of shards,
// or less. [Glob] makes paths of patterns. The files may be compressed by gzip, zstd or bzip2;
// their content says how, not their names. They may lack the blocks of zeros at their end.
//
// A link to a file of the same archive is that file. Other entries than files, and links that lead
// elsewhere, are passed over. A name of a file that is absolute, or has a zero or a part ".." in
// it, is an error that wraps ErrKey.
//
// For a damaged file the error is an [*encoding.FileError] with the offset of the fault.
func NewShards(d Decoder, paths ...string) data.Stream {
	return NewShardsWith(d, ShardOptions{}, paths...)
}

// NewShardsWith is NewShards with options, such as a random order.
func NewShardsWith(d Decoder, o ShardOptions, paths ...string) data.Stream {
	return &shards{paths, data.Any[Decoder]{Value: d}, o}
}

// A Decoder makes a sample of a Record. For worker processes, its type is registered by
// wire.RegisterType.
type Decoder interface {
	Decode(ctx context.Context, r Record) (data.Sample, error)
}

// decode makes a sample of a record.
func (d *shards) decode(ctx context.Context, r shardRecord) (data.Sample, error) {
	s, err := d.Decoder.Value.Decode(ctx, r.Record)
	if err != nil {
		return nil, fmt.Errorf("%s: sample %s: %w", r.path, r.Key, err)
	}
	return s, nil
}

// Records yields the records of a tar file, whose keys never lead out of the folder into which
// somebody unpacks them; see [NewShards]. An error, which is an [*encoding.FileError], ends the
// sequence. Its offset is one of the unpacked archive.
func Records(path string) iter.Seq2[Record, error] { return readShard(path, false) }

// readShard yields the records of a tar file, without the contents of their files if only names are
// wanted.
func readShard(path string, names bool) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		f, err := openShard(path)
		if err != nil {
			yield(Record{}, err)
			return
		}
		defer f.Close()
		s := shardReader{tar: tarball{r: f}, path: path, names: names}
		for {
			r, err := s.next()
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(Record{}, &encoding.FileError{Path: path, Offset: f.n, Err: early(err)})
				return
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// counter counts the bytes that are read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// maxFile bounds a file in a shard, of which all is read to memory.
const maxFile = 1 << 30

// A shardReader is a shard while it is read, and the record that has begun.
type shardReader struct {
	tar    tarball
	path   string
	names  bool // contents are not wanted
	record Record
	index  *shardIndex // nil before the first link
}

// next returns the record before the one that begins, or io.EOF.
func (s *shardReader) next() (Record, error) {
	for {
		e, err := s.tar.next()
		if err == io.EOF && s.record.Files != nil {
			last := s.record
			s.record = Record{}
			return last, nil
		}
		if err != nil {
			return Record{}, err
		}
		key, kind, ok := split(e.name)
		if !ok || !e.regular() && e.target() == "" {
			continue
		}
		if !inside(e.name) {
			return Record{}, fmt.Errorf("%w: %q; give the file another name, and make the shard anew", ErrKey, e.name)
		}
		body, ok, err := s.content(e)
		if err != nil {
			return Record{}, err
		}
		if !ok {
			continue
		}
		before := s.record
		if key != before.Key || before.Files == nil {
			s.record = Record{key, map[string][]byte{}}
		}
		if _, twice := s.record.Files[kind]; twice {
			return Record{}, fmt.Errorf("%w: two files %s", data.ErrShape, e.name)
		}
		s.record.Files[kind] = body
		if before.Files != nil && key != before.Key {
			return before, nil
		}
	}
}

// content reads a file, or the file that a link leads to. ok is false if a link leads to no file of
// the shard.
func (s *shardReader) content(e tarEntry) (body []byte, ok bool, err error) {
	r := fileRange{size: e.size}
	if !e.regular() {
		if s.index == nil {
			if s.index, err = indexShard(s.path); err != nil {
				return nil, false, err
			}
		}
		if r, ok = s.index.find(e.target()); !ok {
			return nil, false, nil
		}
	}
	switch {
	case r.size > maxFile:
		return nil, false, fmt.Errorf("%w: file %s has %d bytes, and %d are the limit; divide it, or unpack the shard",
			ErrLimit, e.name, r.size, maxFile)
	case s.names:
		return nil, true, nil
	case e.regular():
		body, err = s.tar.content(r.size)
	default:
		body, err = r.read(s.path)
	}
	return body, err == nil, err
}

// readAll reads n bytes. It makes room for 1 MiB, and then for four times what has come.
func readAll(r io.Reader, n int64) ([]byte, error) {
	var all []byte
	for have := int64(0); have < n; have = int64(len(all)) {
		all = slices.Grow(all, int(min(n-have, max(1<<20, 3*have))))
		k, err := io.ReadFull(r, all[len(all):min(int64(cap(all)), n)])
		all = all[:len(all)+k]
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// inside reports whether a file of that name is unpacked into the folder where that is done, on any
// system. "./a" is: tar writes such names.
func inside(name string) bool {
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == '\\' })
	return !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, `\`) && !strings.Contains(name, "\x00") &&
		!slices.Contains(parts, "..")
}

// split cuts a path at the first dot of its last part. Files that begin with a dot belong to no
// sample.
func split(name string) (key, kind string, ok bool) {
	dir, base := path.Split(name)
	key, kind, ok = strings.Cut(base, ".")
	return dir + key, strings.ToLower(kind), ok && key != ""
}
