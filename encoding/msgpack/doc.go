// Package msgpack writes values with tensors as MessagePack, in the convention of Python's
// msgpack-numpy, and reads them.
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
// The trap: a file must be read from its beginning to its end, and tensors in it are not aligned,
// so nothing is mapped. For the weights of a model, safetensors is the better format.
package msgpack
