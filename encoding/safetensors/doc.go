// Package safetensors reads and writes named tensors in the safetensors format. A file has a JSON
// header with dtypes, shapes and offsets, then the elements, and no code.
//
//	err := safetensors.Save("model.safetensors", nn.State(net), map[string]string{"epoch": "3"})
//	…
//	f, err := safetensors.Open("model.safetensors")
//	if err != nil {
//		return err // an *encoding.FileError says which tensor of which file is no good
//	}
//	defer f.Close()
//	w, err := f.Tensor("conv1.weight")
//
// Save replaces a file in one step, so a reader opens the old file or the new one, never a part.
// Open checks the whole header before it allocates memory: every offset, size and name, and that
// the elements fill the file without holes and overlaps.
//
// Encode and Decode do the same with a stream, in one pass. NewFile reads one tensor at a time from
// an io.ReaderAt, such as a member of an archive or an object in a store.
//
// A model in several files has an index, model.safetensors.index.json: [Open] opens it as well, and
// [SaveSharded] writes one.
//
// The trap: Tensor returns a copy on the heap. If several processes need a tensor, one of them
// reads, shares and sends it. Map copies nothing: the tensor's elements are the file. If another
// process cuts the file short, reading the tensor faults; [tensor.Catch] makes an error of such a
// fault.
package safetensors
