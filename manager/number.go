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

func isFloat[T ipc.Number]() bool { one := T(1); return one/2 != 0 }

// encodeWord returns the 64-bit representation of v in shared memory.
func encodeWord[T ipc.Number](v T) uint64 {
	if isFloat[T]() {
		return math.Float64bits(float64(v))
	}
	return uint64(int64(v))
}

// decodeWord returns the value represented by w. It is the inverse of [encodeWord].
func decodeWord[T ipc.Number](w uint64) T {
	if isFloat[T]() {
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
		words: func(a, b uint64) uint64 { return encodeWord(decodeWord[T](a) + decodeWord[T](b)) },
		items: func(a, b item) (item, error) {
			var sum T
			for _, it := range []item{a, b} {
				if it.body == nil {
					continue
				}
				v, err := unpackItem[T](unkept{}, item{body: it.body})
				if err != nil {
					return item{}, fmt.Errorf("%w: %w", ErrNotNumber, err)
				}
				sum += v
			}
			total := encodeArg(sum)
			if total.err != nil {
				return item{}, total.err
			}
			return total.takeItem(), nil
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
	for _, register := range []func(){
		registerNumber[int], registerNumber[int8], registerNumber[int16], registerNumber[int32],
		registerNumber[int64], registerNumber[uint], registerNumber[uint8], registerNumber[uint16],
		registerNumber[uint32], registerNumber[uint64], registerNumber[uintptr],
		registerNumber[float32], registerNumber[float64],
	} {
		register()
	}
	orders[kindOf[string]()] = sortBy[string]
}

func registerNumber[T ipc.Number]() {
	arithmetics[kindOf[T]()] = arithmeticOf[T]()
	orders[kindOf[T]()] = sortBy[T]
}

// An order sorts items in ascending order, in place. It is the function for one kind of number
// or for strings. If it returns [ErrNotOrdered], the items are unchanged.
type order func(items []item) error

// sortBy is the [order] of the type T: it sorts items that are encoded values of type T. It
// returns [ErrNotOrdered] if one of them is not. It sorts indices by their keys and then moves
// the items. Sorting the items themselves would generate more code for each T.
func sortBy[T cmp.Ordered](items []item) error {
	keys, places := make([]T, len(items)), make([]int, len(items))
	for i, it := range items {
		key, err := unpackItem[T](unkept{}, item{body: it.body})
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

// arithmeticArg decodes argument i as the name of a number type and returns the arithmetic of
// that type. It returns [ErrNotNumber] if the name is another one.
func (c *call) arithmeticArg(i int) (arithmetic, error) {
	name, err := decodeArg[string](c, i)
	if err != nil {
		return arithmetic{}, err
	}
	a, ok := arithmetics[name]
	if !ok {
		return a, fmt.Errorf("%w: %s", ErrNotNumber, name)
	}
	return a, nil
}

// addDelta returns the sum of the item old, which may be empty and then counts as 0, and an
// argument, as an item without blocks. kind and delta are indices of arguments: argument kind
// names the number type, and argument delta is the number to add. It returns [ErrNotNumber] if
// the type or one of the items is not a number. It does not release old.
func (c *call) addDelta(old item, kind, delta int) (item, error) {
	a, err := c.arithmeticArg(kind)
	if err != nil {
		return item{}, err
	}
	by, err := c.takeArg(delta)
	if err != nil {
		return item{}, err
	}
	by.release(c.s.d)
	return a.items(old, by)
}

// checkType returns an error that wraps wire.ErrType if values of type T cannot be sent to other
// processes, so that it is reported early.
func checkType[T any]() error { return codec.Check[T]() }
