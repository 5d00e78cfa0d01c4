package safetensors

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/tensor"
)

// indexSuffix is the suffix of index file names. It follows the name of the model.
const indexSuffix = ".safetensors.index.json"

// cutIndexSuffix returns name without [indexSuffix], in any case of letters. ok is false, and
// model is name, if name does not end with it.
func cutIndexSuffix(name string) (model string, ok bool) {
	n := len(name) - len(indexSuffix)
	if n < 0 || !strings.EqualFold(name[n:], indexSuffix) {
		return name, false
	}
	return name[:n], true
}

// index maps tensors to the files that contain them, as an index file does in JSON.
type index struct {
	Metadata  map[string]any    `json:"metadata"`
	WeightMap map[string]string `json:"weight_map"`
}

// isIndex reports whether the file at path is an index. An index is JSON text. A file of tensors
// begins with a 64-bit header length, and the upper bytes of that are 0. The error is the error
// of opening or reading.
func isIndex(path string) (bool, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return false, fmt.Errorf("open tensors: %w", err)
	}
	defer f.Close()
	var begin [8]byte
	n, err := io.ReadFull(f, begin[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, fmt.Errorf("read tensors: %w", err)
	}
	text := bytes.TrimSpace(begin[:n])
	return bytes.HasPrefix(text, []byte("{")) && !bytes.Contains(text, []byte{0}), nil
}

// openIndex opens the files that an index lists and validates their headers. The caller must
// close the [File]. It returns the same errors as [Open].
func openIndex(path string) (*File, error) {
	ix, err := readIndex(path)
	if err != nil {
		return nil, err
	}
	f := &File{path: path, shards: map[string]*shard{}, home: map[string]*shard{}}
	f.names = slices.Sorted(maps.Keys(ix.WeightMap))
	for _, name := range f.names {
		if err := f.setShard(name, ix.WeightMap[name]); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	f.setMetadata()
	return f, nil
}

func readIndex(path string) (ix index, err error) {
	f, err := safefile.Open(path)
	if err != nil {
		return ix, fmt.Errorf("open tensors: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxHeader+1))
	if err != nil {
		return ix, fmt.Errorf("read tensors: %w", err)
	}
	if err = json.Unmarshal(b, &ix); err == nil && (ix.WeightMap == nil || len(b) > maxHeader) {
		err = errors.New("missing weight_map, or index too large")
	}
	if err != nil {
		return ix, wrapError(path, "", fmt.Errorf("%w: not a tensor index: %w", ErrHeader, err))
	}
	return ix, nil
}

// setShard assigns the tensor name to file, the file name in the index, and opens the file if
// necessary. f.Close closes it, also after an error. The error wraps [ErrHeader] if the file
// name is not a plain name next to the index, or if the file does not contain the tensor;
// otherwise it is an error of [Open].
func (f *File) setShard(name, file string) (err error) {
	s := f.shards[file]
	if s == nil {
		if !filepath.IsLocal(file) || filepath.Base(file) != file || !strings.HasSuffix(file, ".safetensors") {
			return wrapError(f.path, name, fmt.Errorf("%w: %q is not a file in the index's directory", ErrHeader, file))
		}
		if s, err = openShard(filepath.Join(filepath.Dir(f.path), file)); err != nil {
			return err
		}
		f.shards[file] = s
	}
	if _, ok := s.header.infos[name]; !ok {
		return wrapError(f.path, name, fmt.Errorf("%w: missing in %s", ErrHeader, file))
	}
	f.home[name] = s
	return nil
}

// defaultShardBytes is the default of SaveOptions.ShardBytes.
const defaultShardBytes = 5 << 30

// saveSharded writes the files of a model next to path, and then their index to path. model is
// the prefix of the file names. It returns the same errors as [Save]; files that were written
// before an error remain.
func saveSharded(path, model string, tensors map[string]*tensor.Tensor, opts SaveOptions) error {
	if err := checkTensorsOpen(tensors); err != nil {
		return fmt.Errorf("save %s: %w", path, err)
	}
	shards, total := split(tensors, int(cmp.Or(opts.ShardBytes, defaultShardBytes)))
	ix := index{Metadata: map[string]any{"total_size": total}, WeightMap: map[string]string{}}
	for i, shard := range shards {
		file := fmt.Sprintf("%s-%05d-of-%05d.safetensors", model, i+1, len(shards))
		if err := saveFile(filepath.Join(filepath.Dir(path), file), shard, opts.Metadata); err != nil {
			return err
		}
		for name := range shard {
			ix.WeightMap[name] = file
		}
	}
	return safefile.Replace(path, func(f *os.File) error {
		e := json.NewEncoder(f)
		e.SetIndent("", "  ")
		return e.Encode(ix)
	})
}

// split partitions the tensors, in the order of their names, into sets of at most limit bytes. A
// tensor of more bytes is the only one of its set. total is the number of bytes of all tensors.
func split(tensors map[string]*tensor.Tensor, limit int) (shards []map[string]*tensor.Tensor, total int) {
	room := 0
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		size := tensors[name].Nbytes()
		if len(shards) == 0 || size > room {
			shards = append(shards, map[string]*tensor.Tensor{})
			room = limit
		}
		shards[len(shards)-1][name] = tensors[name]
		room -= size
		total += size
	}
	return shards, total
}
