package pt

import (
	"bytes"
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

// Note [Tensors in pickles] pickle.dumps(tensor) is the calls of a file of torch.save, but that the
// storage of each is the call _load_from_bytes(b), where b is a legacy file of nothing but that
// storage.

var loadFromBytes = value.Named("torch.storage._load_from_bytes")

// Marshal returns the pickle of v in a protocol from 2 to 5, as pickle.dumps would. The pickle has
// the elements of tensors. v is of a type that [Save] takes. The error wraps ErrUnsupported.
func Marshal(v any, protocol int) ([]byte, error) {
	s := newSaver()
	tree, err := s.lower(v)
	if err != nil {
		return nil, fmt.Errorf("pickle %T: %w", v, err)
	}
	for _, o := range s.order {
		file, err := o.legacyFile()
		if err != nil {
			return nil, fmt.Errorf("pickle %T: %w", v, err)
		}
		inside := &pickle.Object{Class: loadFromBytes, Args: value.Tuple{file}}
		for _, call := range o.calls {
			call.Args[0] = inside
		}
	}
	b, err := pickle.Marshal(tree, protocol)
	if err != nil {
		return nil, fmt.Errorf("pickle %T: %w", v, err)
	}
	return b, nil
}

// legacyFile is what torch.save wrote before 1.6, of the storage.
func (o *origin) legacyFile() (file []byte, err error) {
	magic, _ := new(big.Int).SetString(legacyMagic, 10)
	sizes := pickle.NewDict("short", 2, "int", 4, "long", 4)
	id := append(o.id.ID.(value.Tuple), nil)
	if id[1] == value.Named(untyped) {
		id[1] = value.Named("torch.ByteStorage") // PyTorch writes the other one as well, but cannot read it here
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
	b, err := o.bytes()
	file = binary.LittleEndian.AppendUint64(file, uint64(id[4].(int)))
	return append(file, b...), err
}

// Unmarshal reads a pickle of tensors, parameters, numpy arrays and plain values, as pickle.dumps
// writes it. The types are those of [Load]. Unmarshal runs nothing that the pickle names. The error
// wraps ErrFormat, ErrUnsupported, or ErrGlobal for names of anything else.
func Unmarshal(b []byte) (any, error) {
	tree, err := pickle.Unmarshal(b, pickledNames().Find, pickle.Limits{})
	if err != nil {
		return nil, fmt.Errorf("read pickle: %w", unread(err))
	}
	in := &pickled{left: len(b), places: map[*pickle.Object]*pickle.Persistent{}}
	v, err := lift(tree, in, Options{})
	if err != nil {
		return nil, fmt.Errorf("read pickle: %w", err)
	}
	return v, nil
}

// pickledNames returns those of plain values, and of calls that make tensors or are known not to.
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

// A pickled container has the storages of one pickle, each a file of its own.
type pickled struct {
	files  []pickledStorage
	places map[*pickle.Object]*pickle.Persistent // of the calls that have been looked into
	// bytes that the calls to come may have: the same bytes could be in many
	left int
}

type pickledStorage struct {
	file *legacy
	key  string // in the file
}

// reference says where the storage of a call is, by the number of its file.
func (in *pickled) reference(o *pickle.Object) (*pickle.Persistent, error) {
	if p := in.places[o]; p != nil {
		return p, nil
	}
	b, err := value.Arg[[]byte](o, 0)
	if err != nil || o.Class != loadFromBytes {
		return nil, malformed("a storage that %s makes", o.Class)
	}
	if in.left -= len(b); in.left < 0 {
		return nil, malformed("its storages have more bytes than it has")
	}
	size := int64(len(b))
	file := &legacy{from: contents{bytes.NewReader(b), size, nil}, tally: Options{}.tally(size)}
	tree, err := file.parse()
	if err != nil {
		return nil, err
	}
	inside, ok := tree.(*pickle.Persistent)
	if !ok {
		return nil, malformed("a storage that is %T", tree)
	}
	id := slices.Clone(inside.ID.(value.Tuple)) // a place, as parse knows
	p := &pickle.Persistent{ID: id}
	in.files = append(in.files, pickledStorage{file, id[2].(string)})
	id[2] = strconv.Itoa(len(in.files) - 1)
	in.places[o] = p
	return p, nil
}

func (in *pickled) storage(key string, dt tensor.DType, size int64) (*tensor.Tensor, error) {
	n, err := strconv.Atoi(key)
	if err != nil {
		return nil, err
	}
	return in.files[n].file.storage(in.files[n].key, dt, size)
}

// inside makes what a call in a pickle would have made that makes no tensor: a storage by itself.
func (l *loader) inside(in *pickled, o *pickle.Object) (any, error) {
	if o.Class != loadFromBytes {
		return nil, fmt.Errorf("%w: a call of %s", ErrUnsupported, o.Class)
	}
	p, err := in.reference(o)
	if err != nil {
		return nil, err
	}
	return l.bare(p)
}
