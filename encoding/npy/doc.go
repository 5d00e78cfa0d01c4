// Package npy reads and writes numpy's files: one array in a .npy, several by name in a .npz.
//
//	err := npy.Save("x.npy", t)
//	t, err := npy.Map("x.npy")    // the file's pages, not a copy
//	all, err := npy.LoadAll("x.npz")
//	err = npy.Save("x.npz", map[string]*tensor.Tensor{"mean": m, "std": s})
//
// [Encode] and [Decode] do the same with streams. An .npz has its directory at its end, so
// [NewArchive] needs an io.ReaderAt.
//
// The package reads all of numpy's versions of the format, both orders of elements and of bytes,
// and compressed .npz. It writes the bytes that numpy writes, except for the dates in an .npz.
// Where an array has records, text or Python objects, the error wraps ErrDType and says which.
package npy
