// Package msgpack reads and writes values with tensors as MessagePack, in the convention of
// Python's msgpack-numpy.
//
//	state := map[string]*tensor.Tensor{"w": tensor.Ones(tensor.Float32, 2, 3)}
//	if err := msgpack.Save("model.msgpack", state); err != nil {
//		return err
//	}
//	opts := msgpack.Options{MaxBytes: 1 << 30}
//	loaded, _, err := msgpack.Load("model.msgpack", opts)
//	if err != nil {
//		return err
//	}
//	fmt.Println(loaded["w"])
//
// Start with [Save], [Load] and [Marshal]. Python reads the result with msgpack.unpackb(b,
// object_hook=msgpack_numpy.decode).
//
// A file must be read sequentially, and its tensors are not aligned, so they cannot be mapped.
// Model weights should be stored as safetensors instead.
package msgpack
