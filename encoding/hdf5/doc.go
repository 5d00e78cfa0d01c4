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
// The parts of a file stand in any order, and are changed in place. So a file is not a stream:
// NewFile needs an io.ReaderAt, and Encode builds the file in memory before it writes.
//
// h5py, and every program on libhdf5 1.8 or newer, reads the files that this package writes. Each
// dtype stays itself: bool and complex numbers are written as h5py writes them.
//
// The package reads the files that h5py writes, with libver="latest" as well: groups, numbers of
// both byte orders, text and attributes; contiguous, compact and chunked data sets, in any index of
// chunks; gzip, lzf, shuffle and Fletcher's checksum. Where a file uses another feature, the error
// wraps ErrUnsupported and names it. Open passes over soft and external links and over data sets of
// other types.
//
// The trap: a chunk is compressed as a whole, so a slab that touches a corner of a chunk costs the
// whole chunk. Read and write in slabs that are whole chunks.
package hdf5
