package ipc

// A Value is a number in shared memory, for any processes of the domain. It is read and changed as
// a whole, also where nobody locks anything; Python's RawValue is a Value whose Mutex nobody uses.
// Python's v.value += 1 loses additions, Add does not. The Mutex is for changes of more than one
// number. A bool or a struct is a [Record]. The zero Value is closed.
type Value[T Number] struct{ elements[valueCell[T]] }

// NewValue makes a value. The caller closes it.
func NewValue[T Number](v T) (*Value[T], error) {
	o, err := newNumbers[T](valueName[T](), 1)
	if err != nil {
		return nil, err
	}
	value := &Value[T]{elementsOf[valueCell[T]](o)}
	return value, value.Store(v)
}

func valueName[T Number]() string { return "Value[" + elemName[T]() + "]" }

// array is v as an array of one element.
func (v *Value[T]) array() *Array[T] { return &Array[T]{sequenceOf[arrayCell[T]](v.obj)} }

// Load returns the value.
func (v *Value[T]) Load() (T, error) { return v.array().At(0) }

// Store sets the value.
func (v *Value[T]) Store(n T) error { return v.array().Set(0, n) }

// Add adds delta and returns the sum. No addition is lost, whoever else adds.
func (v *Value[T]) Add(delta T) (sum T, err error) { return v.array().Add(0, delta) }

// CompareAndSwap sets the value to n if it equals old, and reports whether it did.
func (v *Value[T]) CompareAndSwap(old, n T) (swapped bool, err error) {
	return v.array().CompareAndSwap(0, old, n)
}
