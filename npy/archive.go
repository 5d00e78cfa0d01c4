package npy

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/shoal-mp/shoal/internal/regular"
	"github.com/shoal-mp/shoal/internal/replace"
	"github.com/shoal-mp/shoal/internal/zipfile"
	"github.com/shoal-mp/shoal/tensor"
)

// extension is that of an array in an archive.
const extension = ".npy"

// SaveAll writes tensors as an .npz as numpy.savez does, in the order of their names. The file takes its place when it is whole.
func SaveAll(path string, tensors map[string]*tensor.Tensor) error {
	return replace.Write(path, func(f *os.File) error {
		z := zip.NewWriter(f)
		for _, name := range sorted(tensors) {
			w, err := z.CreateHeader(&zip.FileHeader{Name: name + extension, Method: zip.Store})
			if err == nil {
				err = write(w, tensors[name])
			}
			if err != nil {
				return fmt.Errorf("array %q: %w", name, err)
			}
		}
		return z.Close()
	})
}

// LoadAll reads the arrays of an .npz, compressed or not, to the heap. The error is a *[FileError].
func LoadAll(path string) (map[string]*tensor.Tensor, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, &FileError{path, "", err}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, &FileError{path, "", err}
	}
	entries, err := zipfile.Read(f, info.Size())
	if err != nil {
		return nil, &FileError{path, "", fmt.Errorf("%w: %w", ErrFormat, err)}
	}
	all := make(map[string]*tensor.Tensor, len(entries))
	for _, file := range sorted(entries) {
		name, ok := strings.CutSuffix(file, extension)
		if !ok {
			return nil, &FileError{path, file, malformed("it is no %s", extension)}
		}
		if all[name], err = unpack(entries[file]); err != nil {
			return nil, &FileError{path, name, err}
		}
	}
	return all, nil
}

// unpack reads an array that must be as long as the archive says.
func unpack(e zipfile.Entry) (*tensor.Tensor, error) {
	r, err := e.Open()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	defer r.Close()
	h, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	if uint64(h.length)+uint64(h.size) != e.UncompressedSize64 {
		return nil, malformed("%v of %v need %d bytes, and it has %d", h.shape, h.dtype, h.size, e.UncompressedSize64)
	}
	t := tensor.Empty(tensor.Uint8, h.size)
	defer t.Close()
	b := tensor.Bytes(t)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) { // where the checksum is compared
		return nil, malformed("after its elements: %v", err)
	}
	h.clean(b)
	return h.view(t.Storage())
}
