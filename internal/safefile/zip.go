package safefile

import (
	"archive/zip"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
)

// ErrZip is wrapped if an archive is malformed or inconsistent.
var ErrZip = errors.New("zip: malformed")

// A ZipEntry is a file in an archive.
type ZipEntry struct {
	*zip.File
	Offset int64 // offset of its data in the archive
}

// ReadZip returns the entries of an archive by name. It returns an error that wraps [ErrZip] for
// duplicate names, overlapping entries, impossible sizes, encryption, and compression other than
// deflate.
func ReadZip(r io.ReaderAt, size int64) (entries map[string]ZipEntry, err error) {
	archive, err := zip.NewReader(r, size)
	if errors.Is(err, zip.ErrFormat) {
		return nil, fmt.Errorf(
			"%w: no central directory at the end: the file is truncated, or not a zip file", ErrZip)
	}
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // nothing is unpacked
		return nil, fmt.Errorf("%w: %w", ErrZip, err)
	}
	entries = make(map[string]ZipEntry, len(archive.File))
	for _, f := range archive.File {
		at, err := f.DataOffset()
		if err != nil {
			return nil, fmt.Errorf("%w: entry %.100q: read header: %w", ErrZip, f.Name, err)
		}
		if _, twice := entries[f.Name]; twice {
			return nil, malformedError(f, "name is not unique")
		}
		if err := checkSizes(f, at, size); err != nil {
			return nil, err
		}
		entries[f.Name] = ZipEntry{f, at}
	}
	return entries, checkOverlap(entries)
}

// checkSizes returns an error that wraps [ErrZip] if the sizes of an entry contradict its offset,
// the size of the archive or its compression. It also refuses an entry that is encrypted, or
// compressed by another method than deflate.
func checkSizes(f *zip.File, at, size int64) error {
	packed, whole := f.CompressedSize64, f.UncompressedSize64
	switch {
	case packed > uint64(size) || at > size-int64(packed):
		return malformedError(f, "%d bytes at offset %d exceed the file", packed, at)
	case f.Method == zip.Store && packed != whole:
		return malformedError(f, "entry is stored with %[2]d bytes, want %[1]d", whole, packed)
	case f.Method == zip.Deflate && whole/MaxDeflateRatio > packed:
		return malformedError(f, "size %d is implausible for %d compressed bytes", whole, packed)
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return malformedError(f, "compression method %d is not supported", f.Method)
	case f.Flags&1 != 0:
		return malformedError(f, "entry is encrypted")
	}
	return nil
}

// checkOverlap rejects overlapping entries, because a small file could otherwise contain any number
// of large ones.
func checkOverlap(entries map[string]ZipEntry) error {
	all := make([]ZipEntry, 0, len(entries))
	for _, e := range entries {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b ZipEntry) int { return cmp.Compare(a.Offset, b.Offset) })
	end := int64(0)
	for _, e := range all {
		if e.Offset < end {
			return malformedError(e.File, "entry overlaps another entry")
		}
		end = e.Offset + int64(e.CompressedSize64)
	}
	return nil
}

func malformedError(f *zip.File, format string, args ...any) error {
	return fmt.Errorf("%w: entry %.100q: %s", ErrZip, f.Name, fmt.Sprintf(format, args...))
}
