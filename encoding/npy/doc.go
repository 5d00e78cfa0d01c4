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
// All of numpy's versions of the format are read, both orders of elements and of bytes, and
// compressed .npz. What is written is what numpy writes itself, byte for byte, but for the dates in
// an .npz. Arrays of records, text and Python objects are errors that wrap ErrDType and say so.
package npy
