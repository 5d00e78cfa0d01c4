package codec

import "reflect"

// A bulk writes and reads all elements of a slice v without reflection for each. For decode, the
// slice must have its final length. This is about twice as fast.
type bulk interface {
	encode(e *Encoder, v reflect.Value)
	decode(d *Decoder, v reflect.Value) error // all of v's elements
}

// bulks contains the element types with a bulk codec. It does not contain types defined from them,
// which may have methods.
var bulks = map[reflect.Type]bulk{
	reflect.TypeFor[float64](): bulkOf[float64]{(*Encoder).Float, (*Decoder).Float},
	reflect.TypeFor[float32](): bulkOf[float32]{(*Encoder).Float32, (*Decoder).Float32},
	reflect.TypeFor[int64]():   bulkOf[int64]{(*Encoder).Int, (*Decoder).Int},
	reflect.TypeFor[uint64]():  bulkOf[uint64]{(*Encoder).Uint, (*Decoder).Uint},
	reflect.TypeFor[int]():     bulkOf[int]{encodeInt, decodeInt},
	reflect.TypeFor[string]():  bulkOf[string]{(*Encoder).String, (*Decoder).String},
}

type bulkOf[T any] struct {
	write func(*Encoder, T)
	read  func(*Decoder) (T, error)
}

func (b bulkOf[T]) encode(e *Encoder, v reflect.Value) {
	for _, x := range *pointerTo[[]T](v) {
		b.write(e, x)
	}
}

func (b bulkOf[T]) decode(d *Decoder, v reflect.Value) error {
	s := *pointerTo[[]T](v)
	for i := range s {
		x, err := b.read(d)
		if err != nil {
			return err
		}
		s[i] = x
	}
	return nil
}

// pointerTo returns the address of v. v must be addressable, and its type must be T or a type
// defined as T.
func pointerTo[T any](v reflect.Value) *T {
	return v.Addr().Convert(reflect.TypeFor[*T]()).Interface().(*T)
}

func encodeInt(e *Encoder, v int) { e.Int(int64(v)) }

func decodeInt(d *Decoder) (int, error) { return readInt[int](d, reflect.TypeFor[int]()) }
