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

// word returns the 64-bit representation of v in shared memory.
func word[T ipc.Number](v T) uint64 {
	if fractional[T]() {
		return math.Float64bits(float64(v))
	}
	return uint64(int64(v))
}

// number returns the value represented by w. It is the inverse of word.
func number[T ipc.Number](w uint64) T {
	if fractional[T]() {
		return T(math.Float64frombits(w))
	}
	return T(int64(w))
}

// arithmetic contains the addition of a number type for the server: of two words, and of two items.
type arithmetic struct {
	words func(a, b uint64) uint64
	items func(a, b item) (item, error) // an item without bytes counts as 0
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

// arithmetics and orders contain the operations of the number and string types, by the name of
// their kind.
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

// An order sorts items in place. If it returns [ErrNotOrdered], the items are unchanged.
type order func(items []item) error

// sortBy sorts indices by their keys and then moves the items. Sorting the items themselves would
// generate more code for each T.
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

// kindOf returns the name of T's kind, by which the server selects its operations.
func kindOf[T any]() string { return reflect.TypeFor[T]().Kind().String() }

// arithmetic decodes an argument that names a number type.
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

// addTo returns the sum of the item old, which may be empty, and the argument delta. The argument
// kind names the number type.
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

// check returns an error if values of type T cannot be sent to other processes, so that it is
// reported early.
func check[T any]() error { return codec.Check[T]() }
