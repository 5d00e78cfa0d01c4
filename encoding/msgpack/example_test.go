package msgpack_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/shoal-mp/shoal/encoding/msgpack"
	"github.com/shoal-mp/shoal/tensor"
)

func Example() {
	b, err := msgpack.Marshal(map[string]any{"step": 3, "x": tensor.Ones(tensor.Float32, 2)})
	if err != nil {
		panic(err)
	}
	v, err := msgpack.Unmarshal(b)
	if err != nil {
		panic(err)
	}
	state := v.(map[string]any)
	fmt.Println(state["step"], state["x"])
	// Output: 3 tensor([1., 1.])
}

func ExampleOptions() {
	b, err := msgpack.Marshal([]any{tensor.Ones(tensor.Float32, 1000), strings.Repeat("x", 2000)})
	if err != nil {
		panic(err)
	}
	_, err = msgpack.Decode(strings.NewReader(string(b)), msgpack.Options{MaxBytes: 4096})
	fmt.Println(errors.Is(err, msgpack.ErrLimit))
	// Output: true
}
