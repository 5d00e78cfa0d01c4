package python_test

import (
	"fmt"

	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/encoding/python"
)

// Values go through Python's pickles, and stay what they are.
func Example() {
	members, err := python.NewSet(true, "a", "b")
	if err != nil {
		panic(err)
	}
	tuple := python.Tuple{python.NewDict("lr", 0.1, "step", 3), members, python.Size{2, 3}}
	b, err := pt.Marshal(tuple, pt.MarshalOptions{})
	if err != nil {
		panic(err)
	}
	v, err := pt.Unmarshal(b) // as pickle.loads does
	if err != nil {
		panic(err)
	}
	t := v.(python.Tuple)
	for key, value := range t[0].(*python.Dict).All() {
		fmt.Println(key, value)
	}
	fmt.Println(t[1].(*python.Set).Members(), t[2])
	// Output:
	// lr 0.1
	// step 3
	// [a b] [2 3]
}

// Keys are equal where they are in Python.
func ExampleDict() {
	d := new(python.Dict)
	for _, key := range []any{1, 1.0, true} {
		if err := d.Set(key, fmt.Sprint(key)); err != nil {
			panic(err)
		}
	}
	fmt.Println(d.Len(), d.Set([]int{1}, 0))
	// Output: 1 python: invalid key: []int is not hashable
}

// pickled returns what Python's pickle.loads would make of v, as Go has it.
func pickled(v any) any {
	b, err := pt.Marshal(v, pt.MarshalOptions{})
	if err != nil {
		panic(err)
	}
	if v, err = pt.Unmarshal(b); err != nil {
		panic(err)
	}
	return v
}

// A numpy array of two float32.
func ExampleArray() {
	a := &python.Array{DType: "<f4", Shape: []int{2}, Data: []byte{0, 0, 128, 63, 0, 0, 0, 64}} // 1 and 2
	got := pickled(a).(*python.Array)
	fmt.Println(got.DType, got.Shape, got.Data)
	// Output: <f4 [2] [0 0 128 63 0 0 0 64]
}

// A numpy.int16 of 258.
func ExampleScalar() {
	got := pickled(&python.Scalar{DType: "<i2", Data: []byte{2, 1}}).(*python.Scalar)
	fmt.Println(got.DType, got.Data)
	// Output: <i2 [2 1]
}

func ExampleByteArray() {
	fmt.Printf("%s\n", pickled(&python.ByteArray{Bytes: []byte("abc")}).(*python.ByteArray).Bytes)
	// Output: abc
}

func ExampleDevice() {
	fmt.Println(pickled(python.Device("cuda:0")))
	// Output: cuda:0
}

func ExampleGlobal() {
	fmt.Println(python.Global{Module: "torch.optim", Name: "Adam"})
	// Output: torch.optim.Adam
}

// What a class that only Python knows has left in a file.
func ExampleRecord() {
	r := &python.Record{Class: python.Global{Module: "train", Name: "Config"}, State: python.NewDict("lr", 0.1)}
	fmt.Println(r.Class)
	fmt.Println(r.Attr("lr"))
	// Output:
	// train.Config
	// 0.1 true
}
