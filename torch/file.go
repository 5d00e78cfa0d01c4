package torch

import (
	"fmt"

	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/tensor"
)

// Save writes v to a .pt file that torch.load reads, with weights_only=True too. It is [pt.Save].
func Save(path string, v any) error { return pt.Save(path, v) }

// Load reads what torch.save has written as a T, by the rules of [Recv]: any takes whatever there
// is, a map[string]*tensor.Tensor a state dict. The caller closes what was mapped (see [CloseAll]).
// It is [pt.Load], which says more.
func Load[T any](path string, o pt.Options) (v T, err error) {
	loaded, err := pt.Load(path, o)
	if err != nil {
		return v, err
	}
	if err := assign(&v, loaded); err != nil {
		CloseAll(loaded)
		return v, fmt.Errorf("load %s: %w", path, err)
	}
	return v, nil
}

// StateDict returns the tensors in what Load returned as any, by the names of state_dict(): of a
// whole module, too. It is [pt.StateDict].
func StateDict(v any) (map[string]*tensor.Tensor, error) { return pt.StateDict(v) }

// Marshal returns the pickle of a value, in protocol 2 to 5, as pickle.dumps would write it: the
// elements of tensors are in it, and nothing is shared. It is [pt.Marshal].
func Marshal(v any, protocol int) ([]byte, error) { return pt.Marshal(v, protocol) }

// Unmarshal reads what pickle.dumps has written; see Conn.Recv for the types. It never runs what
// the pickle names. It is [pt.Unmarshal].
func Unmarshal(b []byte) (any, error) { return pt.Unmarshal(b) }
