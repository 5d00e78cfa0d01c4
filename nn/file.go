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

// LoadFile moves m to the device dev, or to the host if dev is nil, and copies the tensors of a
// file into its parameters and buffers. The file may be a state dict or a whole module written by
// torch.save, a .safetensors file, or the index of a sharded one. LoadFile detects the format by
// the content, not by the name. It also reads tensors that were saved on a GPU.
//
// The file must have exactly the names of State(m). Floats are converted to the dtype of m, as in
// PyTorch; other dtypes must match. For each difference the error wraps [ErrMissing],
// [ErrUnexpected], [ErrShape] or [ErrDType]. It wraps [tensor.ErrClosed] if m is closed, and
// [ErrFile] if the format is not supported. Otherwise it is an I/O or device error. After an error
// m is unchanged, unless the error wraps [tensor.ErrFile] because the file was truncated during the
// copy. To load a part of a file or of m, see [ReadState], [Under] and [LoadPart].
//
// If the file can be mapped, LoadFile reads it in pieces: besides m it needs a few MiB of memory.
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
	if err := compareStates(own, state, sameKind); err != nil {
		return errors.Join(err, suggestPrefix(own, state))
	}
	if err := To(m, dev); err != nil {
		return err
	}
	return guardedCopy(own, state, moveInto)
}

// guardedCopy calls move for each name that is in both own and state. If move panics with an
// error, guardedCopy returns it: it wraps [tensor.ErrFile] if a mapped file is truncated
// meanwhile. Some tensors may have been moved then.
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

// piece is the number of elements that LoadFile copies at a time. It bounds the file's pages in
// memory.
const piece = 1 << 20

// moveInto copies from into to and then drops the pages of the file that it has read. from must not
// be used elsewhere, because dropping its pages discards changes.
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

// sameKind reports whether a tensor of dtype t may be loaded into one of dtype own: the dtypes are
// equal, or both are floats.
func sameKind(own, t tensor.DType) bool { return own == t || isFloat(own) && isFloat(t) }

func isFloat(dt tensor.DType) bool {
	switch dt {
	case tensor.Float64, tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Float8E4M3FN, tensor.Float8E5M2:
		return true
	}
	return false
}

// LoadPart copies the tensors that are both in state and in m, like PyTorch's load_state_dict with
// strict=False. It returns, sorted, the names of State(m) that are missing in state and the
// unexpected names in state. Floats are converted to the dtype of m. The error wraps [ErrShape] or
// [ErrDType] for each other mismatch, and [tensor.ErrClosed] if m or state is closed; m is then
// unchanged. It wraps [tensor.ErrFile] if a mapped file of state is truncated during the copy; m
// may then be partly changed.
func LoadPart(m Module, state map[string]*tensor.Tensor) (missing, unexpected []string, err error) {
	own := State(m)
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if state[name] == nil {
			missing = append(missing, name)
		} else {
			problems = append(problems, compareTensors(name, own[name], state[name], sameKind))
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

// Under returns the tensors of state with names that begin with prefix and a dot. The keys of the
// result are the rest of the names. Use it to select one model in a checkpoint of several, or the
// network that DistributedDataParallel saved under "module". The tensors are not copied, so the
// caller must close each of them only once.
func Under(state map[string]*tensor.Tensor, prefix string) map[string]*tensor.Tensor {
	part := map[string]*tensor.Tensor{}
	for name, t := range state {
		if rest, ok := strings.CutPrefix(name, prefix+"."); ok {
			part[rest] = t
		}
	}
	return part
}

// suggestPrefix returns an error that suggests a prefix under which state has all names of own, or
// nil if there is no such prefix.
func suggestPrefix(own, state map[string]*tensor.Tensor) error {
	for name := range own {
		for _, other := range slices.Sorted(maps.Keys(state)) {
			prefix, ok := strings.CutSuffix(other, "."+name)
			if ok && hasAll(Under(state, prefix), own) {
				return fmt.Errorf("the names exist with the prefix %q: call LoadPart(m, Under(state, %q)) with "+
					"the state from ReadState",
					prefix, prefix)
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

// SaveFile writes State(m) to a file that LoadFile and PyTorch can read: a safetensors file if path
// ends in .safetensors, and otherwise a state dict in the format of torch.save. It writes a
// temporary file in the same directory and renames it to path when it is complete.
//
// The error wraps [ErrEmpty] if a Sequential in m has a nil layer, or if m has no parameters and no
// buffers because its layers are nil. It wraps [tensor.ErrClosed] if m is closed. Otherwise it is
// an I/O error. After an error an existing file at path is unchanged.
func SaveFile(m Module, path string) error {
	state := State(m)
	if err := checkSaveable(m, state); err != nil {
		return fmt.Errorf("save %s: %w", path, err)
	}
	if strings.HasSuffix(strings.ToLower(path), ".safetensors") {
		return safetensors.SaveWith(path, state, safetensors.SaveOptions{Metadata: map[string]string{"format": "pt"}})
	}
	return pt.Save(path, state)
}

// checkSaveable returns an error if m must not be saved. It wraps [ErrEmpty] if a layer of a
// Sequential is nil or if the state is empty because layers are nil, and [tensor.ErrClosed] if a
// tensor is nil or closed.
func checkSaveable(m Module, state map[string]*tensor.Tensor) (err error) {
	walk(reflect.ValueOf(m), "", func(path string, v any) bool {
		if s, ok := v.(*Sequential); ok {
			if i := slices.IndexFunc(s.Layers, func(l Layer) bool { return isNil(l) }); i >= 0 {
				err = fmt.Errorf("layer %s%s%d of a Sequential is nil: %w", path, withDot(path), i, ErrEmpty)
			}
		}
		return err == nil
	})
	if err == nil && len(state) == 0 {
		err = checkLayers(m)
	}
	if err == nil {
		err = checkOpen(state)
	}
	return err
}

// checkLayers returns an error that wraps [ErrEmpty] if m, a module without parameters, has a nil
// layer or an empty list of layers. A nil parameter is no error, because layers may lack
// parameters.
func checkLayers(m Module) error {
	v, text := reflect.ValueOf(m), ""
	if path, fault := nilLayer(v, ""); fault == "" {
		return nil
	} else if path == "" {
		text = fmt.Sprintf("nil %T", m)
	} else {
		text = fmt.Sprintf("%T has no parameters: %s %s", m, path, fault)
	}
	return fmt.Errorf("%s: %w", text, ErrEmpty)
}

// nilLayer returns the path of the first nil layer or empty list of layers in v, and a
// description of the fault. The fault is empty if there is none. path is the path of v; an empty
// one stands for the module itself.
func nilLayer(v reflect.Value, path string) (at, fault string) {
	if !canHoldParams(v.Type()) || isLeaf(v.Type()) {
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
			return path, "is empty"
		}
		for i := range v.Len() {
			if at, fault = nilLayer(v.Index(i), path+withDot(path)+strconv.Itoa(i)); fault != "" {
				return at, fault
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() || f.Tag.Get("wire") == "-" {
				continue
			}
			if at, fault = nilLayer(v.Field(i), path+withDot(path)+snakeCase(f.Name)); fault != "" {
				return at, fault
			}
		}
	}
	return "", ""
}

// ReadState returns the tensors of a file that LoadFile supports, by name and on the host. If the
// format allows it, the tensors are backed by a private mapping of the file, and pages are read
// when they are first accessed. The caller must close each tensor. The error wraps [ErrFile] if the
// format is not supported; otherwise it is an I/O error.
func ReadState(path string) (map[string]*tensor.Tensor, error) {
	kind, err := kindOf(path)
	if err != nil {
		return nil, fmt.Errorf("load state: %w", err)
	}
	switch kind {
	case fileTensors, fileIndex:
		return mapStateFile(path)
	case filePickle:
		v, err := pt.Load(path, pt.Options{Mmap: true, MapLocation: pt.To("cpu")})
		if err != nil {
			return nil, err
		}
		state, _, err := pt.StateDict(v)
		return state, err
	}
	return nil, fmt.Errorf(
		"load state %s: %w: want a file of torch.save, safetensors or a safetensors index",
		path, ErrFile)
}

// File formats that [kindOf] detects.
const (
	fileUnknown = iota
	filePickle
	fileTensors
	fileIndex
)

// kindOf detects the format of a file by its first bytes. It returns fileUnknown without an error
// for other files.
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

// mapStateFile maps the tensors of a safetensors file, or of all files of an index. The caller must
// close them.
func mapStateFile(path string) (map[string]*tensor.Tensor, error) {
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
