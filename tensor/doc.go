// Package tensor has n-dimensional arrays that several processes share, with the operations, names
// and rules of PyTorch.
//
// A [Tensor] is a dtype, a shape and strides over a storage, which may be Go heap or shared memory.
// Views share their storage. To send a tensor (through a queue, or in the argument of a process)
// moves its storage into shared memory, once and for all its views, and copies nothing after that:
// the receiver has the same elements.
//
//	t, err := tensor.NewShared(tensor.Float32, 2, 3) // in shared memory, zeros
//	if err != nil {
//		return err
//	}
//	defer t.Close()
//	t.Select(0, 1).Fill(7)                          // the second row, through a view
//	fmt.Println(t)
//
// Functions such as [Add] return new tensors; methods such as [Tensor.Add] change their receiver
// and return it. A misuse of a tensor, shapes that do not fit for example, is a panic; errors are
// for what the world does. Results, dtypes included, are PyTorch's: testdata/ops.jsonl has what
// that made of some two thousand calls, and a test repeats them.
//
// # Writing while others read
//
// A method that changes its receiver panics where the elements have no room for the result (whose
// category of bool, integer, float and complex is above theirs), and where several indices name one
// element, as after Expand.
//
// On a tensor that other processes use at the same moment, an element of at most 8 bytes is read
// and written whole, at an aligned address. But methods read, compute and then write, so what
// another process writes in between is lost: of two that add 1 at once, one may win.
// [Tensor.AddAtomic] loses nothing, nor do the Atomic options of package optim. No method changes
// all elements at once: others may see some changed and others not yet. Goroutines of one process
// need a lock, or AddAtomic: what is a race between processes is a race in Go's memory model as
// well.
//
// # The trap
//
// The slice that [Data] returns is borrowed. Once the tensor is closed or collected its memory may
// be somebody else's, and once it is shared its elements are elsewhere; the slice still points at
// the old place. Keep the tensor reachable while the slice is used (runtime.KeepAlive), and call
// Data again after Share.
//
// The process that made or received a tensor of shared memory closes it, and so it does each view.
// The garbage collector does it for those forgotten, late; in t.T().Select(0, 1) the view in
// between is forgotten.
package tensor
