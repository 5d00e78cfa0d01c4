package safetensors

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// File is an open file whose header was checked. Its methods may be called concurrently, Close after all others.
type File struct {
	f      *os.File
	header header
	body   int64 // where the elements begin
}

// Open opens a file and checks its header. The caller closes the File. A malformed file is a *[FormatError].
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open tensors: %w", err)
	}
	file := &File{f: f}
	if err := file.read(); err != nil {
		f.Close()
		return nil, err
	}
	return file, nil
}

// read reads and checks the header.
func (f *File) read() error {
	stat, err := f.f.Stat()
	if err != nil {
		return fmt.Errorf("read tensors: %w", err)
	}
	malformed := func(name string, err error) error { return &FormatError{Path: f.f.Name(), Tensor: name, Err: err} }
	var length [lengthSize]byte
	if stat.Size() < lengthSize {
		return malformed("", fmt.Errorf("%w: the file has only %d bytes", ErrHeader, stat.Size()))
	}
	if _, err := f.f.ReadAt(length[:], 0); err != nil {
		return fmt.Errorf("read tensors: %w", err)
	}
	rest, n := uint64(stat.Size()-lengthSize), binary.LittleEndian.Uint64(length[:])
	if n > maxHeader || n > rest {
		return malformed("", fmt.Errorf("%w: its length of %d bytes is beyond the limit or the file", ErrHeader, n))
	}
	raw := make([]byte, n)
	if _, err := f.f.ReadAt(raw, lengthSize); err != nil {
		return fmt.Errorf("read tensors: %w", err)
	}
	f.body = lengthSize + int64(n)
	h, name, err := parseHeader(raw, rest-n)
	if err != nil {
		return malformed(name, err)
	}
	f.header = h
	return nil
}

// Names returns the names of the tensors in the order of the file.
func (f *File) Names() []string { return f.header.names() }

// Info returns dtype and shape of a tensor; ok tells whether the file has it.
func (f *File) Info(name string) (info Info, ok bool) {
	info, ok = f.header.infos[name]
	info.Shape = slices.Clone(info.Shape)
	return info, ok
}

// Metadata returns a copy of what was saved beside the tensors.
func (f *File) Metadata() map[string]string { return maps.Clone(f.header.meta) }

// Tensor reads a tensor into memory of its own. The error wraps [ErrName] if the file has none of that name.
func (f *File) Tensor(name string) (*tensor.Tensor, error) {
	info, ok := f.header.infos[name]
	if !ok {
		return nil, fmt.Errorf("read %s: tensor %q: %w; Names lists what there is", f.f.Name(), name, ErrName)
	}
	t := tensor.New(info.DType, info.Shape...)
	b := tensor.Bytes(t)
	if _, err := io.ReadFull(io.NewSectionReader(f.f, f.body+int64(info.begin), int64(len(b))), b); err != nil {
		return nil, fmt.Errorf("read %s: tensor %q: %w", f.f.Name(), name, err)
	}
	if info.DType == tensor.Bool { // every other byte than 0 and 1 is true, and no bool in Go
		for i, v := range b {
			b[i] = min(v, 1)
		}
	}
	return t, nil
}

// Tensors reads all tensors.
func (f *File) Tensors() (map[string]*tensor.Tensor, error) {
	all := make(map[string]*tensor.Tensor, len(f.header.infos))
	for _, name := range f.Names() {
		t, err := f.Tensor(name)
		if err != nil {
			return nil, err
		}
		all[name] = t
	}
	return all, nil
}

// Close closes the file. Tensors that were read stay.
func (f *File) Close() error { return f.f.Close() }
