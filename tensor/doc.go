// Package tensor has n-dimensional arrays that several processes share, with the operations, names and rules of PyTorch.
//
// A [Tensor] is a dtype, a shape and strides over a storage, which may be Go heap or shared memory. Views share their
// storage. To send a tensor (through a queue, or in the argument of a process) moves its storage into shared memory, once
// and for all its views, and copies nothing after that: the receiver has the same elements.
//
//	t, err := tensor.NewShared(tensor.Float32, 2, 3) // in shared memory, zeros
//	if err != nil {
//		return err
//	}
//	defer t.Close()
//	t.Select(0, 1).Fill(7)                          // the second row, through a view
//	fmt.Println(t)
//
// Functions such as [Add] return new tensors; methods such as [Tensor.Add] change their receiver and return it. Whoever
// misuses a tensor, with shapes that do not fit for example, gets a panic; errors are for what the world does.
//
// # The trap
//
// The slice that [Data] returns is borrowed. Once the tensor is closed or collected its memory may be somebody else's, and
// once it is shared its elements are elsewhere; the slice still points at the old place. Keep the tensor reachable while
// the slice is used (runtime.KeepAlive), and call Data again after Share.
//
// Tensors of shared memory are closed by whoever made or received them, views as well. The garbage collector
// does it for those forgotten, late; in t.T().Select(0, 1) the view in between is forgotten.
package tensor
