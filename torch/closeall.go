package torch

import "io"

// CloseAll closes all tensors, parameters, connections and files in a received value.
func CloseAll(v any) {
	switch v := v.(type) {
	case io.Closer:
		v.Close()
	case []any:
		for _, item := range v {
			CloseAll(item)
		}
	case Tuple:
		CloseAll([]any(v))
	case *Dict:
		for _, item := range v.All() {
			CloseAll(item)
		}
	}
}
