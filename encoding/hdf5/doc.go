// Package hdf5 reads and writes data sets in HDF5 files. The package is pure Go and does not link
// libhdf5.
//
//	w, err := hdf5.Create("images.h5")
//	if err != nil {
//		return err
//	}
//	defer w.Discard() // a no-op after Close
//	x, err := w.Dataset("train/x", tensor.Float32, []int{60_000, 28, 28},
//		hdf5.Options{Chunk: []int{100, 28, 28}, Gzip: 4})
//	if err != nil {
//		return err
//	}
//	batch := tensor.Ones(tensor.Float32, 100, 28, 28)
//	if err := x.WriteSlab(batch, 200, 0, 0); err != nil { // at (200, 0, 0)
//		return err
//	}
//	return w.Close() // renames the file to its final name
//
// Start with [Create], [Writer.Dataset] and [Open].
//
// A data set can be read and written slab by slab, so it may be larger than memory:
// [Dataset.ReadSlab] reads into a tensor, which may be shared. [Append] opens an existing file to
// add data sets. [Output.Append] adds rows in place to a data set with a maximum shape, which
// [Writer.Open] returns.
//
// An HDF5 file needs random access: its parts are in any order and are updated in place. [NewFile]
// therefore takes an [io.ReaderAt], and [Encode] builds the file in memory before it writes it.
//
// Files written by this package can be read by h5py and any program that uses libhdf5 1.8 or newer.
// Every dtype is preserved: bool and complex numbers are encoded as h5py encodes them.
//
// The package reads files written by h5py, including those with libver="latest": groups, numbers in
// both byte orders, strings and attributes; contiguous, compact and chunked data sets with any
// chunk index; the filters gzip, lzf, shuffle and Fletcher-32. If a file uses another feature, the
// error wraps [ErrUnsupported] and names the feature. [Open] skips soft and external links. A data
// set of an unsupported type is listed, and [File.Dataset] returns the error.
//
// Chunks are compressed as a whole, so a slab that overlaps only the corner of a chunk costs as
// much as the entire chunk. Slabs should be aligned to chunks.
package hdf5
