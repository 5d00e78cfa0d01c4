// Package npy reads and writes numpy's files: .npy files with one array, and .npz files with
// several named arrays.
//
//	err := npy.Save("x.npy", t)
//	t, err := npy.Map("x.npy")    // the file's pages, not a copy
//	all, err := npy.LoadAll("x.npz")
//	err = npy.Save("x.npz", map[string]*tensor.Tensor{"mean": m, "std": s})
//
// [Encode] and [Decode] do the same with streams. The directory of an .npz file is at its end, so
// [NewArchive] needs an [io.ReaderAt].
//
// The package supports all versions of the format, row-major and Fortran order, both byte orders,
// and compressed .npz files. It writes the same bytes as numpy, except for the dates in an .npz
// file. For arrays of records, text or Python objects, the error wraps [ErrDType] and describes the
// type.
package npy
