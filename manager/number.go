package manager

import (
	"fmt"
	"math"
	"reflect"

	"github.com/shoal-mp/shoal/wire"
)

// Number is what can be added in one call.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

func fractional[T Number]() bool { one := T(1); return one/2 != 0 }

// word returns v as the 64 bits that stand for it in shared memory.
func word[T Number](v T) uint64 {
	if fractional[T]() {
		return math.Float64bits(float64(v))
	}
	return uint64(int64(v))
}

// number is the counterpart of word.
func number[T Number](w uint64) T {
	if fractional[T]() {
		return T(math.Float64frombits(w))
	}
	return T(int64(w))
}

// arithmetic is what the server knows of a type of numbers: how to add two words, and two items.
type arithmetic struct {
	words func(a, b uint64) uint64
	items func(a, b item) (item, error) // no bytes are 0
}

func arithmeticOf[T Number]() arithmetic {
	return arithmetic{
		words: func(a, b uint64) uint64 { return word(number[T](a) + number[T](b)) },
		items: func(a, b item) (item, error) {
			var sum T
			for _, it := range []item{a, b} {
				if it.body == nil {
					continue
				}
				v, err := unpack[T](noKeeper{}, item{body: it.body})
				if err != nil {
					return item{}, fmt.Errorf("%w: %w", ErrNotNumber, err)
				}
				sum += v
			}
			total := in(sum)
			if total.err == nil {
				total.done(true)
			}
			return total.item, total.err
		},
	}
}

// arithmetics are the types of numbers, by the name of their kind.
var arithmetics = map[string]arithmetic{
	"int": arithmeticOf[int](), "int8": arithmeticOf[int8](), "int16": arithmeticOf[int16](), "int32": arithmeticOf[int32](), "int64": arithmeticOf[int64](),
	"uint": arithmeticOf[uint](), "uint8": arithmeticOf[uint8](), "uint16": arithmeticOf[uint16](), "uint32": arithmeticOf[uint32](), "uint64": arithmeticOf[uint64](),
	"float32": arithmeticOf[float32](), "float64": arithmeticOf[float64](),
}

// kindOf returns the name of T's kind, by which the server finds its arithmetic.
func kindOf[T any]() string { return reflect.TypeFor[T]().Kind().String() }

// arithmetic reads an argument that names a type of numbers.
func (c *call) arithmetic(i int) (arithmetic, error) {
	name, err := arg[string](c, i)
	if err != nil {
		return arithmetic{}, err
	}
	a, ok := arithmetics[name]
	if !ok {
		return a, fmt.Errorf("%w: %s", ErrNotNumber, name)
	}
	return a, nil
}

// addTo is the item that a number, or none, becomes by adding another.
func (c *call) addTo(old item, kind, delta int) (item, error) {
	a, err := c.arithmetic(kind)
	if err != nil {
		return item{}, err
	}
	by, err := c.item(delta)
	if err != nil {
		return item{}, err
	}
	by.release(c.s.d)
	return a.items(old, by)
}

// check says early that values of type T cannot cross.
func check[T any]() error { return wire.Check[T]() }
