package pt

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"sync"

	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/tensor"
)

// Note [Tensors in pickles] pickle.dumps encodes a tensor with the same calls as torch.save. Only
// the storage differs: instead of a persistent ID, it is the call _load_from_bytes(b). b is a
// legacy file that contains just the storage.

var loadFromBytes = value.Named("torch.storage._load_from_bytes")

// defaultProtocol is pickle.DEFAULT_PROTOCOL of Python 3.8 to 3.13.
const defaultProtocol = 4

// MarshalOptions are options of [Marshal]. The zero value is valid.
type MarshalOptions struct {
	// Protocol is the version of the pickle format, from 2 to 5. If it is 0, the version is 4,
	// which Python 3.4 and newer can read.
	Protocol int
}

// Marshal returns the pickle of v, including the elements of tensors, like pickle.dumps. v must
// have a type that [Save] supports. The error wraps [ErrUnsupported], or [tensor.ErrClosed] for a
// closed tensor.
func Marshal(v any, opts MarshalOptions) ([]byte, error) {
	s := newSaver()
	tree, err := s.lowerValue(v)
	if err != nil {
		return nil, fmt.Errorf("pickle %T: %w", v, err)
	}
	for _, o := range s.order {
		file, err := o.encodeLegacyFile()
		if err != nil {
			return nil, fmt.Errorf("pickle %T: %w", v, err)
		}
		inside := &pickle.Object{Class: loadFromBytes, Args: value.Tuple{file}}
		for _, call := range o.calls {
			call.Args[0] = inside
		}
	}
	b, err := pickle.Marshal(tree, cmp.Or(opts.Protocol, defaultProtocol))
	if err != nil {
		return nil, fmt.Errorf("pickle %T: %w", v, err)
	}
	return b, nil
}

// encodeLegacyFile returns a legacy file that contains only this storage. The error wraps
// [pickle.ErrValue], or is the error of reading a device.
func (o *origin) encodeLegacyFile() (file []byte, err error) {
	magic, _ := new(big.Int).SetString(legacyMagic, 10)
	sizes := pickle.NewDict("short", 2, "int", 4, "long", 4)
	id := append(o.id.ID.(value.Tuple), nil)
	if id[1] == value.Named(untyped) {
		// PyTorch also writes UntypedStorage, but cannot read it here.
		id[1] = value.Named("torch.ByteStorage")
	}
	for _, part := range []any{
		magic, legacyVersion, pickle.NewDict("protocol_version", legacyVersion, "little_endian", true,
			"type_sizes", sizes),
		&pickle.Persistent{ID: id}, &pickle.List{Items: []any{id[2]}},
	} {
		b, err := pickle.Marshal(part, protocol)
		if err != nil {
			return nil, err
		}
		file = append(file, b...)
	}
	b, err := o.savedBytes()
	file = binary.LittleEndian.AppendUint64(file, uint64(id[4].(int)))
	return append(file, b...), err
}

// Unmarshal decodes a pickle of tensors, parameters, numpy arrays and plain values, as written by
// pickle.dumps. It returns the same types as [Load]. It executes nothing that the pickle names. The
// caller must close the tensors. The error wraps [ErrFormat], [ErrUnsupported], or [ErrGlobal] if
// the pickle refers to any other name.
func Unmarshal(b []byte) (any, error) {
	tree, err := pickle.Unmarshal(b, pickledNames().Find, pickle.Limits{})
	if err != nil {
		return nil, fmt.Errorf("read pickle: %w", convertError(err))
	}
	in := &pickled{left: len(b), places: map[*pickle.Object]*pickle.Persistent{}}
	v, err := liftTree(tree, in, Options{})
	if err != nil {
		return nil, fmt.Errorf("read pickle: %w", err)
	}
	return v, nil
}

// pickledNames returns the names that [Unmarshal] permits: the names of plain values and of calls
// that create tensors. The unsupported ones in [noForm] are included, because they have better
// error texts.
var pickledNames = sync.OnceValue(func() pickle.Table {
	t := pickle.Table{loadFromBytes: nil, value.Named(untyped): nil, value.Named("torch.Tensor"): nil,
		value.Named("torch.nn.parameter.Parameter"): nil, value.PackedClass: nil}
	for _, name := range []string{rebuildOld, rebuildTensor, rebuildOther, rebuildParameter,
		rebuildParameterState, rebuildFrom} {
		t[value.Named(name)] = nil
	}
	for name := range noForm {
		t[value.Named(name)] = nil
	}
	maps.Copy(t, value.Names())
	return t
})

// pickled is the container of the storages in one pickle. Each storage is a legacy file of its
// own. [Unmarshal] makes it. One goroutine may use it.
type pickled struct {
	files  []pickledStorage
	places map[*pickle.Object]*pickle.Persistent // calls that were decoded already
	// left is the number of bytes that further storages may have in total. It is bounded by the
	// size of the pickle, because many calls could refer to the same bytes.
	left int
}

type pickledStorage struct {
	file *legacy
	key  string // key of the storage in its file
}

// storageReference returns the storage that a call creates. The key in the returned ID is the
// index of its file in in.files. The error wraps [ErrFormat] if the call is not _load_from_bytes
// of a storage, or if the storages exceed the size of the pickle.
func (in *pickled) storageReference(o *pickle.Object) (*pickle.Persistent, error) {
	if p := in.places[o]; p != nil {
		return p, nil
	}
	b, err := value.Arg[[]byte](o, 0)
	if err != nil || o.Class != loadFromBytes {
		return nil, malformed("a storage that %s makes", o.Class)
	}
	if in.left -= len(b); in.left < 0 {
		return nil, malformed("storages exceed the size of the data")
	}
	size := int64(len(b))
	file := &legacy{from: contents{bytes.NewReader(b), size, nil}, tally: Options{}.storageLimit(size)}
	tree, err := file.parse()
	if err != nil {
		return nil, err
	}
	inside, ok := tree.(*pickle.Persistent)
	if !ok {
		return nil, malformed("a storage that is %T", tree)
	}
	id := slices.Clone(inside.ID.(value.Tuple)) // validated by parse
	p := &pickle.Persistent{ID: id}
	in.files = append(in.files, pickledStorage{file, id[2].(string)})
	id[2] = strconv.Itoa(len(in.files) - 1)
	in.places[o] = p
	return p, nil
}

func (in *pickled) openStorage(key string, dt tensor.DType, size int64) (*tensor.Tensor, error) {
	n, err := strconv.Atoi(key)
	if err != nil {
		return nil, err
	}
	return in.files[n].file.openStorage(in.files[n].key, dt, size)
}

// convertInside converts a call in a pickle that does not create a tensor, to a tensor with one
// dimension. It must be a storage on its own; otherwise the error wraps [ErrUnsupported].
func (l *loader) convertInside(in *pickled, o *pickle.Object) (any, error) {
	if o.Class != loadFromBytes {
		return nil, fmt.Errorf("%w: a call of %s", ErrUnsupported, o.Class)
	}
	p, err := in.storageReference(o)
	if err != nil {
		return nil, err
	}
	return l.convertBareStorage(p)
}
