// Package encoding is what the packages below it share: the error that names a file.
//
// Each format has the same names. Save and Load, or Open for a part at a time, take a path. Encode
// writes to an [io.Writer]. Decode reads from an [io.Reader] where the format can be read from its
// beginning on: safetensors, npy and msgpack. A format whose directory is elsewhere is read from an
// [io.ReaderAt] and a size: pt.Decode, npy.NewArchive, hdf5.NewFile, and safetensors.NewFile for a
// part at a time.
package encoding
