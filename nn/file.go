package nn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/encoding/safetensors"
	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/tensor"
)

// LoadFile moves m to a device, or to the host if dev is nil, and copies the tensors of a file into
// its parameters and buffers. The file is a state dict or a whole module of torch.save, a
// .safetensors file, or the index of several. LoadFile tells the format by the content, not by the
// name. It also reads tensors that were saved on a GPU.
//
// The file must have exactly the names of State(m). Floats are converted to the dtype of m, as in
// PyTorch; other dtypes must be those of m. The error wraps ErrMissing, ErrUnexpected, ErrShape or
// ErrDType for each difference, tensor.ErrClosed if m was closed, ErrFile for another format, or is
// the error of reading. After an error m is unchanged. For a part of a file or of m, see
// [ReadState], [Under] and [LoadPart].
//
// LoadFile reads a file that can be mapped by pieces: besides m it takes a few MiB.
func LoadFile(m Module, path string, dev tensor.Device) error {
	state, err := ReadState(path)
	if err != nil {
		return err
	}
	if err := loadOn(m, state, dev); err != nil {
		return fmt.Errorf("load %s: %w", path, errors.Join(err, closeAll(state)))
	}
	return closeAll(state)
}

func loadOn(m Module, state map[string]*tensor.Tensor, dev tensor.Device) error {
	own := State(m)
	if err := matches(own, state, sameKind); err != nil {
		return errors.Join(err, elsewhere(own, state))
	}
	if err := To(m, dev); err != nil {
		return err
	}
	return guardedCopy(own, state, moveInto)
}

// guardedCopy copies what has one name, also from a file that somebody cuts short.
func guardedCopy(own, state map[string]*tensor.Tensor, move func(to, from *tensor.Tensor)) error {
	return tensor.Catch(func() {
		for name, t := range own {
			if state[name] != nil {
				move(t, state[name])
			}
		}
	})
}

func copyInto(to, from *tensor.Tensor) { to.CopyFrom(from) }

// piece is how many elements LoadFile has in memory besides those of the module.
const piece = 1 << 20

// moveInto copies a tensor that nobody else has, and lets go of the file's pages that have been
// read.
func moveInto(to, from *tensor.Tensor) {
	if from.Numel() <= piece || to.Device() != nil || !to.IsContiguous() || !from.IsContiguous() {
		to.CopyFrom(from)
		foreignTensors.Forget(from)
		return
	}
	all, read := to.View(-1), from.View(-1)
	defer all.Close()
	defer read.Close()
	for at := 0; at < read.Numel(); at += piece {
		n := min(piece, read.Numel()-at)
		part, of := all.Narrow(0, at, n), read.Narrow(0, at, n)
		part.CopyFrom(of)
		foreignTensors.Forget(of)
		part.Close()
		of.Close()
	}
}

// sameKind lets floats be of another width than those that they are copied to.
func sameKind(own, t tensor.DType) bool { return own == t || isFloat(own) && isFloat(t) }

func isFloat(dt tensor.DType) bool {
	switch dt {
	case tensor.Float64, tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Float8E4M3FN, tensor.Float8E5M2:
		return true
	}
	return false
}

// LoadPart copies the tensors whose names are in both state and m, as PyTorch's load_state_dict
// with strict=False. It returns the names of State(m) that state lacks, and the names in state that
// m lacks, sorted. Floats are converted to the dtype of m. The error wraps ErrShape or ErrDType for
// each other difference, tensor.ErrClosed where m or state was closed, and then m is unchanged.
func LoadPart(m Module, state map[string]*tensor.Tensor) (missing, unexpected []string, err error) {
	own := State(m)
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if state[name] == nil {
			missing = append(missing, name)
		} else {
			problems = append(problems, fits(name, own[name], state[name], sameKind))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(state)) {
		if _, ok := own[name]; !ok {
			unexpected = append(unexpected, name)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return missing, unexpected, err
	}
	return missing, unexpected, guardedCopy(own, state, copyInto)
}

// Under returns the tensors of state whose names begin with prefix and a dot, by the rest of their
// names. It finds one model in a checkpoint of several, or the network that DistributedDataParallel
// has saved under "module". The tensors are those of state, so the caller closes them once.
func Under(state map[string]*tensor.Tensor, prefix string) map[string]*tensor.Tensor {
	part := map[string]*tensor.Tensor{}
	for name, t := range state {
		if rest, ok := strings.CutPrefix(name, prefix+"."); ok {
			part[rest] = t
		}
	}
	return part
}

// elsewhere says under which prefix a state has all names of a module, if there is one.
func elsewhere(own, state map[string]*tensor.Tensor) error {
	for name := range own {
		for _, other := range slices.Sorted(maps.Keys(state)) {
			prefix, ok := strings.CutSuffix(other, "."+name)
			if ok && hasAll(Under(state, prefix), own) {
				return fmt.Errorf("the names are there under %q: LoadPart(m, Under(state, %q)) loads those, of the state that ReadState returns", prefix, prefix)
			}
		}
		break
	}
	return nil
}

func hasAll(state, names map[string]*tensor.Tensor) bool {
	for name := range names {
		if state[name] == nil {
			return false
		}
	}
	return true
}

// SaveFile writes State(m) to a file that LoadFile and PyTorch read: a safetensors file if path
// ends in .safetensors, and otherwise a state dict of torch.save. It writes a temporary file beside
// path, and renames it to path when it is whole.
//
// The error wraps ErrEmpty if a Sequential in m has a nil layer, or if m has no parameters and no
// buffers because its layers are nil. It wraps tensor.ErrClosed if m was closed. Otherwise it is
// the error of writing. After an error there is no new file, and an old one is unchanged.
func SaveFile(m Module, path string) error {
	state := State(m)
	if err := complete(m, state); err != nil {
		return fmt.Errorf("save %s: %w", path, err)
	}
	if strings.HasSuffix(strings.ToLower(path), ".safetensors") {
		return safetensors.Save(path, state, map[string]string{"format": "pt"})
	}
	return pt.Save(path, state)
}

// complete returns an error unless all of m is in its state, and something is.
func complete(m Module, state map[string]*tensor.Tensor) (err error) {
	walk(reflect.ValueOf(m), "", func(path string, v any) bool {
		if s, ok := v.(*Sequential); ok {
			if i := slices.IndexFunc(s.Layers, func(l Layer) bool { return isNil(l) }); i >= 0 {
				err = fmt.Errorf("layer %s%s%d of a Sequential is nil: %w", path, dot(path), i, ErrEmpty)
			}
		}
		return err == nil
	})
	if err == nil && len(state) == 0 {
		err = unmade(m)
	}
	if err == nil {
		err = checkOpen(state)
	}
	return err
}

// unmade returns an error for a layer that is nil, or for a list of no layers, in a module without
// parameters. Parameters themselves may be nil: a layer can do without.
func unmade(m Module) error {
	v, text := reflect.ValueOf(m), ""
	if path, fault := nilLayer(v, ""); fault == "" {
		return nil
	} else if path == "" {
		text = fmt.Sprintf("a nil %T", m)
	} else {
		text = fmt.Sprintf("a %T without parameters, whose %s %s", m, path, fault)
	}
	return fmt.Errorf("%s: %w", text, ErrEmpty)
}

// nilLayer returns the path of the first layer that is nil, or of the first list of none, and which
// it is.
func nilLayer(v reflect.Value, path string) (at, fault string) {
	if !leads(v.Type()) || isLeaf(v.Type()) {
		return "", ""
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return path, "is nil"
		}
		return nilLayer(v.Elem(), path)
	case reflect.Slice, reflect.Array:
		if v.Len() == 0 {
			return path, "are none"
		}
		for i := range v.Len() {
			if at, fault = nilLayer(v.Index(i), path+dot(path)+strconv.Itoa(i)); fault != "" {
				return at, fault
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() || f.Tag.Get("wire") == "-" {
				continue
			}
			if at, fault = nilLayer(v.Field(i), path+dot(path)+snake(f.Name)); fault != "" {
				return at, fault
			}
		}
	}
	return "", ""
}

// ReadState returns the tensors of a file that LoadFile reads, by name and on the host. If the
// format allows it, their elements are pages of the file, which the kernel reads when they are
// touched. The caller closes each tensor. The error wraps ErrFile, or is the error of reading.
func ReadState(path string) (map[string]*tensor.Tensor, error) {
	kind, err := kindOf(path)
	if err != nil {
		return nil, fmt.Errorf("load state: %w", err)
	}
	switch kind {
	case fileTensors, fileIndex:
		return mapAll(path)
	case filePickle:
		v, err := pt.Load(path, pt.Options{Mmap: true, MapLocation: pt.To("cpu")})
		if err != nil {
			return nil, err
		}
		state, _, err := pt.StateDict(v)
		return state, err
	}
	return nil, fmt.Errorf(
		"load state %s: %w: it is neither what torch.save writes, nor safetensors, nor an index of those",
		path, ErrFile)
}

// The kinds of files.
const (
	fileUnknown = iota
	filePickle
	fileTensors
	fileIndex
)

// kindOf looks at the first bytes of a file.
func kindOf(path string) (int, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return fileUnknown, err
	}
	defer f.Close()
	var head [9]byte
	n, err := f.ReadAt(head[:], 0)
	if err != nil && err != io.EOF {
		return fileUnknown, err
	}
	info, err := f.Stat()
	if err != nil {
		return fileUnknown, err
	}
	switch header := binary.LittleEndian.Uint64(head[:8]); {
	case n < len(head):
		return fileUnknown, nil
	case string(head[:4]) == "PK\x03\x04", head[0] == 0x80: // a zip file, a pickle
		return filePickle, nil
	case head[8] == '{' && header <= uint64(info.Size()):
		return fileTensors, nil
	case head[0] == '{':
		return fileIndex, nil
	}
	return fileUnknown, nil
}

// mapAll maps the tensors of a file of safetensors, or of the files of an index.
func mapAll(path string) (map[string]*tensor.Tensor, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	state := map[string]*tensor.Tensor{}
	for _, name := range f.Names() {
		if state[name], err = f.Map(name); err != nil {
			delete(state, name)
			return nil, errors.Join(err, closeAll(state))
		}
	}
	return state, nil
}

func closeAll(state map[string]*tensor.Tensor) error {
	var problems []error
	for _, t := range state {
		problems = append(problems, t.Close())
	}
	return errors.Join(problems...)
}
