// Package msgpack reads and writes values with tensors as MessagePack, in the convention of
// Python's msgpack-numpy.
//
//	err := msgpack.Save("model.msgpack", state)
//	b, err := msgpack.Marshal(map[string]any{"step": 3, "x": t})
//	// Python: msgpack.unpackb(b, object_hook=msgpack_numpy.decode)
//
//	Python                    Go
//	None, bool, str, bytes    nil, bool, string, []byte
//	int, float, complex       int64 or uint64, float64, complex128
//	list, tuple               []any
//	dict of str or bytes      map[string]any
//	numpy.ndarray, a scalar   *tensor.Tensor
//
// A file must be read sequentially, and its tensors are not aligned, so they cannot be mapped.
// Model weights should be stored as safetensors instead.
package msgpack
