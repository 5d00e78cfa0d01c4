// Package encoding defines the error type shared by the packages of file formats below it.
//
//	tensors, err := npy.LoadAll("model.npz")
//	var file *encoding.FileError
//	if errors.As(err, &file) {
//		fmt.Println("look at byte", file.Offset, "of", file.Path)
//	}
//	if err != nil {
//		return err
//	}
//	fmt.Println(len(tensors))
//
// Start with [safetensors.Open], [npy.LoadAll] or [pt.Load], and find a [FileError] in their
// errors.
//
// Every format has Save, which writes a file by its path, and Encode, which writes to an
// [io.Writer]. Load reads a whole file; package safetensors has File.Tensors instead. To read one
// tensor at a time, use safetensors.Open, hdf5.Open or npy.OpenArchive.
//
// Decode reads from an [io.Reader] if the format can be read sequentially: safetensors, npy and
// msgpack. A format with a directory at the end or in the middle of the file must be read from an
// [io.ReaderAt] with a size, as in pt.Decode, npy.NewArchive and hdf5.NewFile. safetensors.NewFile
// also does so, to read one tensor at a time.
//
// [safetensors.Open]: https://pkg.go.dev/github.com/shoal-mp/shoal/encoding/safetensors#Open
// [npy.LoadAll]: https://pkg.go.dev/github.com/shoal-mp/shoal/encoding/npy#LoadAll
// [pt.Load]: https://pkg.go.dev/github.com/shoal-mp/shoal/encoding/pt#Load
package encoding
