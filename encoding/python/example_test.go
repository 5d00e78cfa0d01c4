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
	b, err := pt.Marshal(python.Tuple{python.NewDict("lr", 0.1, "step", 3), members, python.Size{2, 3}}, 4)
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
	// Output: 1 python: no key: []int is not hashable
}
