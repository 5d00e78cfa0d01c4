package torch

import (
	"io"

	"github.com/shoal-mp/shoal/encoding/python"
)

// CloseAll closes all tensors, parameters, connections, proxies and files in a received value.
func CloseAll(v any) {
	switch v := v.(type) {
	case io.Closer:
		v.Close()
	case []any:
		for _, item := range v {
			CloseAll(item)
		}
	case python.Tuple:
		CloseAll([]any(v))
	case *python.Dict:
		for _, item := range v.All() {
			CloseAll(item)
		}
	}
}
