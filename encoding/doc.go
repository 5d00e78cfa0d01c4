// Package encoding has the error that the packages below it share. It names a file and a place in
// it.
//
// Each format has the same names. Save and Load take a path, and so does Open, which reads one
// tensor at a time. Encode writes to an [io.Writer]. Decode reads from an [io.Reader] where the
// format can be read from its beginning on: safetensors, npy and msgpack. A format whose directory
// is at the end or in the middle of the file is read from an io.ReaderAt and a size, by pt.Decode,
// npy.NewArchive and hdf5.NewFile. So is safetensors, one tensor at a time, by safetensors.NewFile.
package encoding
