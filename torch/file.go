package torch

import (
	"fmt"

	"github.com/shoal-mp/shoal/encoding/pt"
)

// Load reads what torch.save has written as a T, by the rules of [Recv]: any takes whatever there
// is, a map[string]*tensor.Tensor a state dict. The caller closes what was mapped (see [CloseAll]).
// It is [pt.Load] for a type;
// pt.Save writes such files.
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
