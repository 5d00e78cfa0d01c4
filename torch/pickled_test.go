package torch

import (
	"fmt"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/tensor"
)

// TestPickle_CrossesBothWays reads tensors that pickle.dumps of PyTorch has written, and lets
// pickle.loads read Go's, in each protocol.
func TestPickle_CrossesBothWays(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		k := converse(t, py, Options{}, "file_descriptor")
		for protocol := 2; protocol <= 5; protocol++ {
			cell(t, fmt.Sprint("protocol ", protocol), func(t *testing.T) {
				for _, dt := range slices.Concat(dtypes, youngDTypes) {
					if asked[bool](k, "eval", fmt.Sprintf("picklable(%q)", dt)) {
						pickled(t, k, "plain", dt, protocol)
					}
				}
				for _, kind := range objects {
					pickled(t, k, kind, tensor.Float32, protocol)
				}
			})
		}
		k.bye()
	})
}

func pickled(t *testing.T, k *talk, kind string, dt tensor.DType, protocol int) {
	t.Helper()
	CloseAll(k.ask("make", kind, dt.String()))
	v, err := pt.Unmarshal(asked[[]byte](k, "eval", fmt.Sprintf("pickle.dumps(kept, %d)", protocol)))
	if err != nil {
		t.Fatalf("%s %v: %v", kind, dt, err)
	}
	if got := k.ask("read"); !sameNumbers(got, contents(v)) {
		t.Errorf("%s %v: PyTorch has pickled %v, and here is %v", kind, dt, got, contents(v))
	}
	if kind != "two views" { // PyTorch pickles these as two storages
		checkMade(t, v, kind, dt)
	}

	mine := build(k, kind, dt)
	defer CloseAll(mine)
	b, err := pt.Marshal(mine, pt.MarshalOptions{Protocol: protocol})
	if err != nil {
		t.Fatalf("%s %v: %v", kind, dt, err)
	}
	answer := k.ask("unpickle", b).(python.Tuple)
	checkDescription(t, mine, builtTensors(mine), answer[0].([]any), false)
	if !sameNumbers(answer[1], contents(mine)) {
		t.Errorf("%s %v: PyTorch has read %v, not %v", kind, dt, answer[1], contents(mine))
	}
}
