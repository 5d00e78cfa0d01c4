package safetensors

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"unicode/utf8"

	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/tensor"
)

// SaveOptions are options of [SaveWith] and [EncodeWith]. The zero value is valid.
type SaveOptions struct {
	// Metadata is the metadata of each file. It may be nil.
	Metadata map[string]string
	// ShardBytes is the maximum number of bytes of elements in each of the files that an index
	// lists, unless the file consists of one larger tensor. The default is 5 GiB. It must be 0
	// unless the path ends in .safetensors.index.json, and for [EncodeWith].
	ShardBytes int64
}

// Save writes the tensors to a file at path. An existing file is replaced and its mode is kept.
// Save writes to a temporary file in the same directory, syncs it, and renames it to path, so a
// reader never sees a partial file. The output is deterministic.
//
// If path ends in .safetensors.index.json, Save writes one or more files, and then an index of them
// to path. The files of model.safetensors.index.json are named like
// model-00001-of-00002.safetensors. Each file is replaced atomically.
//
// The tensors must not be modified during Save, or the file may contain both old and new elements.
// The error wraps [ErrName], [ErrDType] or [tensor.ErrClosed]; otherwise it is the error of
// writing.
func Save(path string, tensors map[string]*tensor.Tensor) error {
	return SaveWith(path, tensors, SaveOptions{})
}

// SaveWith is like [Save] with the given options. The error also wraps [ErrName] if
// opts.ShardBytes is set and path does not end in .safetensors.index.json.
func SaveWith(path string, tensors map[string]*tensor.Tensor, opts SaveOptions) error {
	model, ok := cutIndexSuffix(filepath.Base(path))
	switch {
	case ok:
		return saveSharded(path, model, tensors, opts)
	case opts.ShardBytes != 0:
		return fmt.Errorf("save %s: %w: got ShardBytes %d, want a name that ends in %s",
			path, ErrName, opts.ShardBytes, indexSuffix)
	}
	return saveFile(path, tensors, opts.Metadata)
}

// saveFile writes one file, as [Save] does for a path that is no index.
func saveFile(path string, tensors map[string]*tensor.Tensor, meta map[string]string) error {
	return safefile.Replace(path, func(f *os.File) error { return encode(f, tensors, meta) })
}

// checkTensorsOpen returns an error that wraps [tensor.ErrClosed] if a tensor is nil or closed.
func checkTensorsOpen(tensors map[string]*tensor.Tensor) error {
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		if err := foreignTensors.Check(tensors[name]); err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
	}
	return nil
}

// fileOrder returns the names of the tensors, sorted by decreasing element size and then by name.
// All tensors are thus aligned.
func fileOrder(tensors map[string]*tensor.Tensor) []string {
	return slices.SortedFunc(maps.Keys(tensors), func(a, b string) int {
		return cmp.Or(cmp.Compare(tensors[b].DType().Size(), tensors[a].DType().Size()), cmp.Compare(a, b))
	})
}

// Encode writes to w the bytes that [Save] writes to a single file, in one pass. If the error wraps
// [ErrName], [ErrDType] or [tensor.ErrClosed], nothing was written; otherwise it is the error of w.
func Encode(w io.Writer, tensors map[string]*tensor.Tensor) error { return encode(w, tensors, nil) }

// EncodeWith is like [Encode] with the given options. The error also wraps [ErrName] if
// opts.ShardBytes is set.
func EncodeWith(w io.Writer, tensors map[string]*tensor.Tensor, opts SaveOptions) error {
	if opts.ShardBytes != 0 {
		return fmt.Errorf("encode: %w: got ShardBytes %d, want 0 for a single stream", ErrName, opts.ShardBytes)
	}
	return encode(w, tensors, opts.Metadata)
}

// encode writes one file to w. If the error wraps [ErrName], [ErrDType], [ErrHeader] or
// [tensor.ErrClosed], nothing was written; otherwise it is the error of w.
func encode(w io.Writer, tensors map[string]*tensor.Tensor, meta map[string]string) error {
	if err := checkTensorsOpen(tensors); err != nil {
		return err
	}
	names := fileOrder(tensors)
	head, err := encodeHeader(names, tensors, meta)
	if err != nil {
		return err
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	for _, name := range names {
		if err := writeElements(w, tensors[name]); err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
	}
	return nil
}

func writeElements(w io.Writer, t *tensor.Tensor) error {
	here, err := t.CPU()
	if err != nil {
		return err
	}
	defer here.Close()
	var whole *tensor.Tensor
	if err := tensor.Catch(func() { whole = here.Contiguous() }); err != nil {
		return err
	}
	defer whole.Close()
	_, err = w.Write(tensor.Bytes(whole))
	runtime.KeepAlive(whole)
	return err
}

// encodeHeader returns the length field and the header, padded with spaces to a multiple of eight
// bytes. names must list the tensors in the order of their data. The error wraps [ErrName] if a
// name or the metadata is not valid UTF-8 or a name is reserved, [ErrDType] if the format lacks the
// dtype of a tensor, or [ErrHeader] if the header is too large.
func encodeHeader(names []string, tensors map[string]*tensor.Tensor, meta map[string]string) ([]byte, error) {
	head := append(make([]byte, lengthSize), '{')
	entry := func(key string, value any) error {
		k, err := json.Marshal(key)
		if err != nil {
			return err
		}
		v, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if len(head) > lengthSize+1 {
			head = append(head, ',')
		}
		head = append(append(append(head, k...), ':'), v...)
		return nil
	}
	if len(meta) > 0 {
		for k, v := range meta {
			if !utf8.ValidString(k) || !utf8.ValidString(v) {
				return nil, fmt.Errorf("metadata %q: %w: not UTF-8", k, ErrName)
			}
		}
		if err := entry(metadata, meta); err != nil {
			return nil, err
		}
	}
	at := 0
	for _, name := range names {
		t := tensors[name]
		code, ok := codes[t.DType()]
		switch {
		case !ok:
			return nil, fmt.Errorf("tensor %q: %w %v: the format has no name for it", name, ErrDType, t.DType())
		case name == metadata || !utf8.ValidString(name):
			return nil, fmt.Errorf("tensor %q: %w: it is reserved or not UTF-8", name, ErrName)
		}
		end := at + t.Numel()*t.DType().Size()
		err := entry(name, struct {
			DType   string `json:"dtype"`
			Shape   []int  `json:"shape"`
			Offsets [2]int `json:"data_offsets"`
		}{code, append([]int{}, t.Shape()...), [2]int{at, end}})
		if err != nil {
			return nil, err
		}
		at = end
	}
	head = append(head, '}')
	for len(head)%8 != 0 {
		head = append(head, ' ')
	}
	if len(head)-lengthSize > maxHeader {
		return nil, fmt.Errorf("%w: header of %d bytes exceeds the limit of the format", ErrHeader, len(head))
	}
	binary.LittleEndian.PutUint64(head, uint64(len(head)-lengthSize))
	return head, nil
}
