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

// A Record consists of the files of one sample in a shard.
type Record struct {
	Key   string            // common path of the files, up to the first dot of the name
	Files map[string][]byte // contents by extension, such as "jpg" and "cls"; the caller may keep them
}

type shards struct {
	Paths   []string
	Decoder data.Any[Decoder]
	Options ShardOptions
}

// NewShards returns a [data.Stream] of samples in tar files, in the layout of WebDataset:
// consecutive files with the same name up to the first dot form a sample. The shards are divided
// among the parts of the stream, and so among ranks and workers. data.Options.Parts should be at
// most the number of shards. [Glob] expands patterns to paths. The files may be compressed with
// gzip, zstd or bzip2, which is detected from their content. They may lack the blocks of zeros at
// the end.
//
// A link to a file of the same archive stands for that file. Other links, and entries that are not
// files, are skipped. A file name that is absolute, contains a zero byte or contains a ".." element
// is an error that wraps [ErrKey].
//
// For a damaged file the error is an [*encoding.FileError] with the offset of the fault.
func NewShards(d Decoder, paths ...string) data.Stream {
	return NewShardsWith(d, ShardOptions{}, paths...)
}

// NewShardsWith is [NewShards] with options, such as a random order.
func NewShardsWith(d Decoder, o ShardOptions, paths ...string) data.Stream {
	return &shards{paths, data.Any[Decoder]{Value: d}, o}
}

// A Decoder converts a Record to a sample. Decode may be called concurrently by worker
// goroutines. Its error is the error of that sample only. To use worker processes, the Decoder's
// type must be registered with wire.RegisterType.
type Decoder interface {
	Decode(ctx context.Context, r Record) (data.Sample, error)
}

// decode decodes a record, and adds its path and key to an error.
func (d *shards) decode(ctx context.Context, r shardRecord) (data.Sample, error) {
	s, err := d.Decoder.Value.Decode(ctx, r.Record)
	if err != nil {
		return nil, fmt.Errorf("%s: sample %s: %w", r.path, r.Key, err)
	}
	return s, nil
}

// Records yields the records of a tar file. The sequence ends with the first error. A damaged file
// is an [*encoding.FileError] with an offset in the unpacked archive. Keys are safe to use as paths
// below a folder; see [NewShards].
func Records(path string) iter.Seq2[Record, error] { return readShard(path, false) }

// readShard yields the records of a tar file, as [Records] does. If names is set, the contents
// of files are nil.
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
			r, err := s.nextRecord()
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(Record{}, &encoding.FileError{Path: path, Offset: f.n, Err: truncatedError(err)})
				return
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// A counter is a reader that counts bytes.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// maxFile limits the size of a file in a shard, because files are read to memory.
const maxFile = 1 << 30

// A shardReader reads the records of a shard.
type shardReader struct {
	tar    tarball
	path   string
	names  bool // skip the contents of files
	record Record
	index  *shardIndex // nil before the first link
}

// nextRecord returns the next record of the shard. It reads up to the first file of the record
// after it. It returns io.EOF at the end. The error wraps [ErrKey] for an unsafe name,
// [data.ErrShape] for two files of one name, [ErrLimit] for a file above maxFile, or an error of
// [tarball.nextEntry].
func (s *shardReader) nextRecord() (Record, error) {
	for {
		e, err := s.tar.nextEntry()
		if err == io.EOF && s.record.Files != nil {
			last := s.record
			s.record = Record{}
			return last, nil
		}
		if err != nil {
			return Record{}, err
		}
		key, kind, ok := split(e.name)
		if !ok || !e.isRegular() && e.linkTarget() == "" {
			continue
		}
		if !isInside(e.name) {
			return Record{}, fmt.Errorf("%w: %q: rename the file and recreate the shard", ErrKey, e.name)
		}
		body, ok, err := s.readContent(e)
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
			return Record{}, fmt.Errorf("%w: duplicate file %s", data.ErrShape, e.name)
		}
		s.record.Files[kind] = body
		if before.Files != nil && key != before.Key {
			return before, nil
		}
	}
}

// readContent reads a file, or the target of a link. body is nil if s.names is set. ok is false
// if the target is not in the shard. The error wraps [ErrLimit] if the file is larger than
// maxFile.
func (s *shardReader) readContent(e tarEntry) (body []byte, ok bool, err error) {
	r := fileRange{size: e.size}
	if !e.isRegular() {
		if s.index == nil {
			if s.index, err = indexShard(s.path); err != nil {
				return nil, false, err
			}
		}
		if r, ok = s.index.find(e.linkTarget()); !ok {
			return nil, false, nil
		}
	}
	switch {
	case r.size > maxFile:
		return nil, false, fmt.Errorf("%w: file %s has %d bytes, want at most %d: split it, or unpack the shard",
			ErrLimit, e.name, r.size, maxFile)
	case s.names:
		return nil, true, nil
	case e.isRegular():
		body, err = s.tar.readContent(r.size)
	default:
		body, err = r.read(s.path)
	}
	return body, err == nil, err
}

// readAll reads n bytes. It returns the error of [io.ReadFull] if there are fewer. It allocates
// 1 MiB at first, and then at most three times the bytes that were read, so that a wrong n does
// not exhaust memory.
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

// isInside reports whether a file of this name is unpacked into the destination folder, on any
// operating system. "./a" is inside, because tar writes such names.
func isInside(name string) bool {
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == '\\' })
	return !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, `\`) && !strings.Contains(name, "\x00") &&
		!slices.Contains(parts, "..")
}

// split splits a path at the first dot of its last element: "a/b.seg.PNG" has the key "a/b" and
// the kind "seg.png". ok is false for names without a dot and names that begin with one, which
// belong to no sample.
func split(name string) (key, kind string, ok bool) {
	dir, base := path.Split(name)
	key, kind, ok = strings.Cut(base, ".")
	return dir + key, strings.ToLower(kind), ok && key != ""
}
