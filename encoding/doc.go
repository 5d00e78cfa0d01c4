// Package encoding has the error type that the packages below it share.
//
// The packages use the same function names. Save, Load and Open take a path; Open reads one tensor
// at a time. Encode writes to an [io.Writer]. Decode reads from an [io.Reader] if the format can be
// read sequentially: safetensors, npy and msgpack. A format with a directory at the end or in the
// middle of the file must be read from an [io.ReaderAt] with a size, as in pt.Decode,
// npy.NewArchive and hdf5.NewFile. safetensors.NewFile also does so, to read one tensor at a time.
package encoding
