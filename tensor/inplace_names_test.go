package tensor_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/tensor"
)

// namedAsWrite reports whether the name of a method says that it writes the elements of its
// receiver: the rule of the package comment.
func namedAsWrite(name string) bool {
	switch name {
	case "CopyFrom", "Zero":
		return true
	}
	return strings.HasPrefix(name, "Fill") || strings.HasSuffix(name, "InPlace") || strings.HasSuffix(name, "Atomic")
}

// TestTensor_MethodsThatWriteAreNamedSo calls each method of a tensor and looks whether it wrote to
// the receiver's storage.
func TestTensor_MethodsThatWriteAreNamedSo(t *testing.T) {
	other := map[string]bool{ // they write no element
		"Touch": true, "Set": true, "Close": true, "Share": true, "PinMemory": true, "Give": true, "CPU": true,
		"ToDevice": true, "Item": true,
	}
	writes, reads := 0, 0
	typ := reflect.TypeFor[*tensor.Tensor]()
	for i := range typ.NumMethod() {
		m := typ.Method(i)
		if other[m.Name] {
			continue
		}
		before, after, err := callOnSquare(m)
		if err != nil {
			t.Errorf("%s: %v", m.Name, err)
			continue
		}
		if wrote := before != after; wrote != namedAsWrite(m.Name) {
			t.Errorf("%s: wrote to its receiver: %t, its name says %t", m.Name, wrote, !wrote)
		}
		if namedAsWrite(m.Name) {
			writes++
		} else {
			reads++
		}
	}
	if writes < 30 || reads < 30 {
		t.Errorf("called %d methods that write and %d that do not, want at least 30 of each", writes, reads)
	}
}

// callOnSquare calls a method of a tensor of shape (2, 2) with arguments that fit, and returns the
// versions of its storage before and after.
func callOnSquare(m reflect.Method) (before, after uint64, err error) {
	x := tensor.Full(tensor.Float32, 2, 2, 2)
	defer x.Close()
	args := []reflect.Value{reflect.ValueOf(x)}
	integers := map[string][]int{"Narrow": {0, 0, 1}, "Select": {0, 0}, "Slice": {0, 0, 1, 1}, "Split": {1, 0},
		"Chunk":     {1, 0},
		"Unsqueeze": {0}, "Flatten": {0, 1}, "Transpose": {0, 1}, "Dim": {0}}[m.Name]
	square := []int{2, 2}
	for i := 1; i < m.Type.NumIn(); i++ {
		in := m.Type.In(i)
		var arg any
		switch {
		case in == reflect.TypeFor[[]int]() && m.Name == "Permute":
			arg = []int{1, 0}
		case in == reflect.TypeFor[[]int]() && m.Name == "Squeeze":
			arg = []int{}
		case in == reflect.TypeFor[[]int]() && m.Name == "AsStrided" && i == 2:
			arg = []int{2, 1}
		case in == reflect.TypeFor[[]int]():
			arg = square
		case in == reflect.TypeFor[int]() && len(integers) > 0:
			arg, integers = integers[0], integers[1:]
		case in == reflect.TypeFor[int]():
			arg = 0
		case in == reflect.TypeFor[float64]() && strings.HasPrefix(m.Name, "Clamp"):
			arg = float64(i)
		case in == reflect.TypeFor[float64]():
			arg = 0.5
		case in == reflect.TypeFor[tensor.DType]():
			arg = tensor.Float32
		case in == reflect.TypeFor[*tensor.Generator]():
			arg = tensor.NewGenerator(1)
		case in == reflect.TypeFor[*tensor.Tensor]():
			switch {
			case strings.HasPrefix(m.Name, "Masked") && i == 1:
				arg = tensor.New(tensor.Bool, 2, 2)
			case strings.HasPrefix(m.Name, "Scatter") && i == 2:
				arg = tensor.New(tensor.Int64, 2, 2)
			case strings.HasPrefix(m.Name, "Index") && i == 2:
				arg = tensor.FromSlice([]int64{0, 1}, 2)
			default:
				arg = tensor.Full(tensor.Float32, 3, 2, 2)
			}
		}
		args = append(args, reflect.ValueOf(arg))
	}
	before = x.Version()
	call := m.Func.Call
	if m.Type.IsVariadic() {
		call = m.Func.CallSlice
	}
	err = tensor.Catch(func() { call(args) })
	return before, x.Version(), err
}
