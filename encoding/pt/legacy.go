package pt

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/big"

	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/tensor"
)

// legacy is a file as written by PyTorch 0.1.10 to 1.5. It is a sequence of pickles: a magic
// number, a version, a description of the machine, the value, and the list of the storage keys.
// The storages follow, each with its number of elements before the elements. [legacy.parse] sets
// at and places.
type legacy struct {
	from   contents
	at     map[string]int64 // offsets of the storages, by key
	places map[string]place
	tally  *safefile.Limit
}

const (
	legacyMagic   = "119547037146038801333356" // 0x1950a86a20f9469cfc6c
	legacyVersion = 1001
)

func loadLegacy(from contents, o Options) (any, error) {
	l := &legacy{from: from, tally: o.storageLimit(from.size)}
	tree, err := l.parse()
	if err != nil {
		return nil, err
	}
	return liftTree(tree, l, o)
}

// parse decodes the value, without its storages, and computes the offsets of the storages. It
// must be called once, before openStorage. The error wraps [ErrFormat] or [ErrUnsupported].
func (l *legacy) parse() (tree any, err error) {
	l.at, l.places = map[string]int64{}, map[string]place{}
	d := pickle.NewDecoder(io.NewSectionReader(l.from, 0, l.from.size), permitName, limits)
	d.Persistent = convertLegacyID
	if err := readLegacyHead(d); err != nil {
		return nil, err
	}
	if tree, err = d.Decode(); err != nil {
		return nil, convertError(err)
	}
	if err := l.findPlaces(tree); err != nil {
		return nil, err
	}
	keys, err := d.Decode()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return tree, l.findStorages(keys, d.Offset())
}

// readLegacyHead decodes and validates the pickles that precede the value. The error wraps
// [ErrFormat], or [ErrUnsupported] for a file of a big-endian machine.
func readLegacyHead(d *pickle.Decoder) error {
	var head [3]any
	for i := range head {
		v, err := d.Decode()
		if err != nil {
			return malformed("neither a zip file nor a pickle of torch.save: %v", err)
		}
		head[i] = v
		if magic, _ := new(big.Int).SetString(legacyMagic, 10); i == 0 {
			if n, ok := v.(*big.Int); !ok || n.Cmp(magic) != 0 {
				return malformed("neither a zip file nor a pickle of torch.save (see pt.Unmarshal for other pickles)")
			}
		}
	}
	system, _ := head[2].(*value.Dict)
	little, _ := system.Get("little_endian")
	switch {
	case head[1] != int64(legacyVersion):
		return malformed("version %v of the legacy format", head[1])
	case little != true:
		return fmt.Errorf("%w: a legacy file of a big-endian machine", ErrUnsupported)
	}
	return nil
}

// convertLegacyID returns the value of a persistent ID. A storage becomes a [pickle.Persistent];
// a module becomes its class, and the source code of the module in the file is ignored. The
// error wraps [ErrFormat].
func convertLegacyID(id any) (any, error) {
	parts, _ := id.(value.Tuple)
	if len(parts) > 1 && parts[0] == "module" {
		class, ok := parts[1].(value.Global)
		if !ok {
			return nil, malformed("the class of a module is %T", parts[1])
		}
		return class, nil
	}
	return &pickle.Persistent{ID: id}, nil
}

// findPlaces collects in l.places the storages that the value refers to. The error wraps
// [ErrFormat] or [ErrUnsupported].
func (l *legacy) findPlaces(tree any) error {
	for p := range pickle.Each[*pickle.Persistent](tree) {
		at, err := parsePlace(p)
		if err != nil {
			return err
		}
		l.places[at.key] = at
	}
	return nil
}

// findStorages computes the offset of each storage into l.at. keys is the decoded list of their
// keys, and at is the offset of the first one. The error wraps [ErrFormat] if a storage is
// unused, is listed twice, or exceeds the file.
func (l *legacy) findStorages(keys any, at int64) error {
	list, ok := keys.(*pickle.List)
	if !ok {
		return malformed("the list of storages is %T", keys)
	}
	for _, k := range list.Items {
		key, _ := k.(string)
		p, known := l.places[key]
		if _, twice := l.at[key]; !known || twice {
			return malformed("storage %v is unused or duplicate", k)
		}
		l.at[key] = at
		at += 8 + p.elements*int64(p.dtype.Size())
		if at > l.from.size {
			return malformed("storage %q ends at %d of %d bytes: the file is cut short", key, at, l.from.size)
		}
	}
	return nil
}

func (l *legacy) openStorage(key string, _ tensor.DType, size int64) (*tensor.Tensor, error) {
	at, ok := l.at[key]
	if !ok {
		return nil, malformed("missing storage %q", key)
	}
	var length [8]byte
	if err := l.from.readFull(length[:], at); err != nil {
		return nil, err
	}
	p := l.places[key]
	if n := binary.LittleEndian.Uint64(length[:]); n != uint64(p.elements) || size != p.elements*int64(p.dtype.Size()) {
		return nil, malformed("got storage %q of %d elements, want %d", key, n, p.elements)
	}
	if err := l.tally.Add(size); err != nil {
		return nil, err
	}
	t := tensor.Empty(tensor.Uint8, int(size))
	return t, l.from.fill(t, at+8)
}
