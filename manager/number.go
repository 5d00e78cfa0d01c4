package manager

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/ipc"
)

func fractional[T ipc.Number]() bool { one := T(1); return one/2 != 0 }

// word returns v as the 64 bits that stand for it in shared memory.
func word[T ipc.Number](v T) uint64 {
	if fractional[T]() {
		return math.Float64bits(float64(v))
	}
	return uint64(int64(v))
}

// number is the counterpart of word.
func number[T ipc.Number](w uint64) T {
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

func arithmeticOf[T ipc.Number]() arithmetic {
	return arithmetic{
		words: func(a, b uint64) uint64 { return word(number[T](a) + number[T](b)) },
		items: func(a, b item) (item, error) {
			var sum T
			for _, it := range []item{a, b} {
				if it.body == nil {
					continue
				}
				v, err := unpack[T](unkept{}, item{body: it.body})
				if err != nil {
					return item{}, fmt.Errorf("%w: %w", ErrNotNumber, err)
				}
				sum += v
			}
			total := in(sum)
			if total.err != nil {
				return item{}, total.err
			}
			return total.own(), nil
		},
	}
}

// arithmetics and orders are what the server knows of types, by the name of their kind.
var (
	arithmetics = make(map[string]arithmetic)
	orders      = make(map[string]order)
)

func init() {
	for _, know := range []func(){
		know[int], know[int8], know[int16], know[int32], know[int64], know[uint], know[uint8], know[uint16],
		know[uint32], know[uint64], know[uintptr],
		know[float32], know[float64],
	} {
		know()
	}
	orders[kindOf[string]()] = sortBy[string]
}

func know[T ipc.Number]() {
	arithmetics[kindOf[T]()] = arithmeticOf[T]()
	orders[kindOf[T]()] = sortBy[T]
}

// An order sorts items in place, or returns ErrNotOrdered and leaves them as they are.
type order func(items []item) error

// sortBy sorts places by their keys: a sort of the items for each T would be large.
func sortBy[T cmp.Ordered](items []item) error {
	keys, places := make([]T, len(items)), make([]int, len(items))
	for i, it := range items {
		key, err := unpack[T](unkept{}, item{body: it.body})
		if err != nil {
			return fmt.Errorf("%w: element %d: %w", ErrNotOrdered, i, err)
		}
		keys[i], places[i] = key, i
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
	before := slices.Clone(items)
	for i, place := range places {
		items[i] = before[place]
	}
	return nil
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
func check[T any]() error { return codec.Check[T]() }
