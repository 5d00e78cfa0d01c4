// Package safetensors reads and writes named tensors in the safetensors format.
//
//	net := nn.NewLinear(784, 10, tensor.NewGenerator(1))
//	err := safetensors.Save("model.safetensors", nn.State(net))
//	if err != nil {
//		return err
//	}
//	f, err := safetensors.Open("model.safetensors")
//	if err != nil {
//		return err // an *encoding.FileError
//	}
//	defer f.Close()
//	w, err := f.Tensor("weight")
//	if err != nil {
//		return err
//	}
//	fmt.Println(w.Shape()) // [10 784]
//
// Start with [Save], [Open] and [File.Tensor].
//
// A file consists of a JSON header with dtypes, shapes and offsets, followed by the elements. It
// contains no code.
//
// [Save] replaces a file atomically, so a reader sees either the old file or the new one. [Open]
// validates the whole header before it allocates memory for elements: all offsets, sizes and names
// must be valid, and the tensors must fill the file without gaps and overlaps.
//
// [Encode] and [Decode] do the same for a stream, in one pass. [NewFile] reads single tensors from
// an [io.ReaderAt], such as an archive member or an object in an object store.
//
// A model in several files has an index, model.safetensors.index.json. [Open] also opens an index,
// and [Save] writes one if the path ends in .safetensors.index.json.
//
// [File.Tensor] returns a copy on the heap. If several processes need a tensor, one of them should
// read, share and send it. [File.Map] copies nothing: the elements of the tensor are pages of the
// file, which must not be truncated. If another process truncates it, reading the tensor faults;
// [tensor.Catch] turns such a fault into an error.
package safetensors
