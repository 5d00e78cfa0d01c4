// Package npy reads and writes numpy's files: .npy files with one array, and .npz files with
// several named arrays.
//
//	x := tensor.Ones(tensor.Float32, 2, 3)
//	if err := npy.Save("x.npy", x); err != nil {
//		return err
//	}
//	arrays := map[string]*tensor.Tensor{"x": x, "2x": tensor.Add(x, x)}
//	if err := npy.Save("all.npz", arrays); err != nil {
//		return err
//	}
//	all, err := npy.LoadAll("all.npz")
//	if err != nil {
//		return err
//	}
//	fmt.Println(all["x"])
//
// Start with [Save], [Load] and [LoadAll]. [Map] returns a tensor in the pages of the file, without
// a copy.
//
// [Encode] and [Decode] do the same with streams. The directory of an .npz file is at its end, so
// [NewArchive] needs an [io.ReaderAt].
//
// The package supports all versions of the format, row-major and Fortran order, both byte orders,
// and compressed .npz files. It writes the same bytes as numpy, except for the dates in an .npz
// file. For arrays of records, text or Python objects, the error wraps [ErrDType] and describes the
// type.
package npy
