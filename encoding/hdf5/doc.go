// Package hdf5 reads and writes data sets in HDF5 files, whole or slab by slab, so that a data set
// may be larger than memory. It is written in Go alone and links no library.
//
//	w, err := hdf5.Create("images.h5")
//	…
//	d, err := w.Dataset("train/x", tensor.Float32, []int{60_000, 28, 28}, hdf5.Options{Chunk: []int{100, 28, 28}, Shuffle: true, Gzip: 4})
//	err = d.WriteSlab(t, 200, 0, 0) // the elements of t from (200, 0, 0) on
//	err = w.Close()                 // the file takes its place
//
//	w, err := hdf5.Append("log.h5") // a file that is there
//	d, err := w.Open("losses")      // which has a maximum shape
//	err = d.Append(t)               // rows behind the last one, in place
//	n, err := w.Dataset("run/2", tensor.Float32, []int{100}, hdf5.Options{}) // a new one
//	err = w.Close()
//
//	f, err := hdf5.Open("images.h5")
//	d, err := f.Dataset("train/x")
//	err = d.ReadSlab(shared, 200, 0, 0) // into a tensor, a shared one say
//
// The parts of a file stand in any order and are changed where they are, so there is nothing to
// read or write from one end to the other: [NewFile] needs an io.ReaderAt, and [Encode] makes the
// file in memory first.
//
// What is written, h5py and all else on libhdf5 1.8 or newer reads, dtypes as they are: float32
// stays float32, bool is h5py's bool, complex numbers are h5py's. Read is what h5py writes, also
// with libver="latest": groups, numbers of both byte orders, contiguous, compact and chunked data
// sets in any index, gzip, lzf, shuffle and Fletcher's checksum; text and attributes. What a file
// uses beyond that is an error that wraps ErrUnsupported and names it; links other than hard ones
// and data sets of other types are passed over.
//
// The trap: a slab is copied out of whole chunks, which are decompressed for it. Read and write in
// slabs that are whole chunks.
package hdf5
