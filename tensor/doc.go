// Package tensor has n-dimensional arrays that several processes share, with the operations, names
// and rules of PyTorch.
//
// A Tensor is a dtype, a shape and strides over a storage on the Go heap or in shared memory. Views
// share their storage. Sending a tensor, through a queue or as the argument of a process, moves its
// storage into shared memory. The move is made once, for all views of the storage. The receiver has
// the same elements, without a copy.
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
// and return it. A misuse of a tensor, such as shapes that do not fit, is a panic with an error
// that wraps [ErrMisuse]; [Catch] returns it. Results and their dtypes are PyTorch's: a test
// repeats some two thousand calls whose results PyTorch has recorded in testdata/ops.jsonl.
//
// A view may have far more elements than memory has: [Tensor.Expand] repeats them, and a tensor
// that another process sends may be such a view. Printing and comparing read as much as there is in
// memory. A result that memory has no room for is a panic with [ErrMemory]. Other operations take
// time by the number of elements: check [Tensor.Numel] of tensors from processes that are not
// trusted.
//
// # The order in memory
//
// The result of an elementwise operation has its dimensions in the order that those of the operands
// have in memory, as in PyTorch. So the result of Exp(x.T()) has the strides of x.T(): it is not
// contiguous, and no element was moved to another row. Of two dimensions the first operand decides
// that has several elements along both. [Tensor.To] keeps the order too. [Tensor.Clone] and
// [Tensor.Contiguous] give contiguous tensors, which [Data], [Bytes] and the calls of package dist
// need.
//
// # Writing while others read
//
// A method that changes its receiver panics if the receiver's dtype cannot hold the result: the
// categories bool, integer, float and complex ascend, and the result's must not be above the
// receiver's. It also panics if several indices name one element, as after Expand.
//
// Several processes may use one tensor at the same moment. An element of at most 8 bytes is read
// and written whole. But a method reads, computes and writes, so it overwrites what another process
// writes in between: if two processes add 1 at once, the element may grow by 1 only.
// [Tensor.AddAtomic] and the Atomic options of package optim lose no addition. A method changes its
// elements one after the other, so another process may see some of them changed and others not yet.
//
// Goroutines of one process need a lock, or AddAtomic, since Go's memory model forbids such races.
//
// # The trap
//
// The slice that [Data] returns is borrowed. When the tensor is closed or collected, its memory may
// go to another tensor or process. When the tensor is shared, its elements move. In both cases the
// slice still points at the old memory. Keep the tensor reachable while the slice is used
// (runtime.KeepAlive), and call Data again after Share.
//
// A process closes each shared tensor that it made or received, and each view of it. The garbage
// collector closes a forgotten tensor, late. In t.T().Select(0, 1) the view t.T() is forgotten.
package tensor
