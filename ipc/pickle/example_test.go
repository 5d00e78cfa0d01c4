package pickle_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/ipc/pickle"
	"github.com/shoal-mp/shoal/tensor"
)

// A queue that both Go and Python use. Python puts a dict into it:
//
//	rollouts.put({"step": 7, "obs": torch.ones(3)})
func ExampleValue_Decode() {
	ctx := context.Background()
	rollouts, err := ipc.NewQueue[pickle.Value](8)
	if err != nil {
		panic(err)
	}
	defer rollouts.Close()
	putAsPython(ctx, rollouts)

	message, err := rollouts.Get(ctx)
	if err != nil {
		panic(err)
	}
	defer message.Close()
	v, err := message.Decode()
	if err != nil {
		panic(err)
	}
	rollout := v.(*python.Dict)
	step, _ := rollout.Get("step")
	obs, _ := rollout.Get("obs")
	fmt.Println(step, obs.(*tensor.Tensor).Sum())
	// Output: 7 3
}

// putAsPython puts the message that Python would put.
func putAsPython(ctx context.Context, q *ipc.Queue[pickle.Value]) {
	m, err := pickle.Encode(python.NewDict("step", 7, "obs", tensor.Ones(tensor.Float32, 3)))
	if err != nil {
		panic(err)
	}
	defer m.Close()
	if err := q.Put(ctx, m); err != nil {
		panic(err)
	}
}

// A message may come from another program, so its pickle may refer to a tensor that it lacks.
func ExampleIndexError() {
	damaged := pickle.Value{Pickle: []byte("\x80\x05K\x02Q.")}
	_, err := damaged.Decode()
	var index *pickle.IndexError
	if errors.As(err, &index) {
		fmt.Println(index.Index, index.Tensors)
	}
	// Output: 2 0
}

// A message for Python: a dict with a torch.Tensor and a numpy.ndarray that share memory.
func ExampleEncode() {
	batch, err := tensor.NewShared(tensor.Float32, 2, 3)
	if err != nil {
		panic(err)
	}
	defer batch.Close()
	m, err := pickle.Encode(map[string]any{"x": batch, "y": pickle.Array{Tensor: batch}})
	if err != nil {
		panic(err)
	}
	defer m.Close()
	fmt.Println(len(m.Tensors))
	// Output: 1
}
