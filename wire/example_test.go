package wire_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/wire"
)

var errDivergence = errors.New("loss is not a number")

func init() { wire.RegisterError("example.errDivergence", errDivergence) }

// An error that has crossed is still the one that its sender returned.
func ExampleRegisterError() {
	ctx := context.Background()
	q, err := ipc.NewQueue[error](1)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer q.Close()
	if err := q.Put(ctx, fmt.Errorf("epoch 3: %w", errDivergence)); err != nil {
		fmt.Println(err)
		return
	}
	got, err := q.Get(ctx)
	fmt.Println(got, err, errors.Is(got, errDivergence))
	// Output: epoch 3: loss is not a number <nil> true
}

type shape struct{ Kind string }

func init() { wire.RegisterType[shape]("example.shape") }

// A queue of any carries the types that are registered.
func ExampleRegisterType() {
	ctx := context.Background()
	q, err := ipc.NewQueue[any](2)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer q.Close()
	for _, v := range []any{shape{"circle"}, 3.5} {
		if err := q.Put(ctx, v); err != nil {
			fmt.Println(err)
			return
		}
		got, err := q.Get(ctx)
		fmt.Printf("%T %v %v\n", got, got, err)
	}
	// Output:
	// wire_test.shape {circle} <nil>
	// float64 3.5 <nil>
}
