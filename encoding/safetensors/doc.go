// Package safetensors reads and writes named tensors in the safetensors format, which holds nothing
// that is executed: a JSON header with dtypes, shapes and offsets, then the elements.
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
// Save replaces the file at once: an opener finds the old one or the new one, never a part. Open
// checks the whole header before anything is allocated: every offset, size and name, and that the
// elements fill the file without holes and overlaps.
//
// [Encode] and [Decode] do the same with a stream, in one pass. [NewFile] reads a part at a time
// from an io.ReaderAt, such as a file in an archive or an object in a store.
//
// A model in several files has an index, model.safetensors.index.json: [Open] opens it as well, and
// [SaveSharded] writes one.
//
// The trap: Tensor returns a copy on the heap. What many processes shall have, share once in one of
// them and send. Map copies nothing: the tensor is the file, and who cuts that short does it under
// the tensor; see tensor.Catch.
package safetensors
