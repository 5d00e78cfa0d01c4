// Package tensor implements n-dimensional arrays that several processes share, with the operations,
// names and rules of PyTorch.
//
//	t, err := tensor.NewShared(tensor.Float32, 2, 3) // zeros
//	if err != nil {
//		return err
//	}
//	defer t.Close()
//	row := t.Select(0, 1) // a view of the second row
//	defer row.Close()
//	row.Fill(7)
//	fmt.Println(tensor.Add(t, tensor.FromSlice([]float32{1, 2, 3}, 3)))
//
// Start with [NewShared], [FromSlice] and [Tensor.Close].
//
// A [Tensor] is a dtype, a shape and strides over a storage on the Go heap or in shared memory.
// Views share their storage. Sending a tensor, through a queue or as the argument of a process,
// moves its storage into shared memory. The move happens once, for all views of the storage. The
// receiver gets the same elements, without a copy.
//
// Functions such as [Add] return new tensors. A method that writes the elements of its receiver
// says so in its name, and returns the receiver: the name ends in InPlace, such as
// [Tensor.AddInPlace], or in Atomic, or begins with Fill, or is Zero or CopyFrom. No other method
// writes. A misuse of a tensor, such as incompatible shapes, is a panic with an error that wraps
// [ErrMisuse]; [Catch] returns it. Results and their dtypes are PyTorch's: a test repeats some two
// thousand calls and compares them with the results that PyTorch recorded in testdata/ops.jsonl.
//
// A view may have far more elements than its storage: [Tensor.Expand] repeats elements, and a
// tensor received from another process may be such a view. Printing and comparing such a view do
// not visit each repetition. An operation panics with [ErrMemory] if its result does not fit in
// memory. Other operations take time proportional to the number of elements: a program should check
// [Tensor.Numel] of tensors from untrusted processes.
//
// # Memory order
//
// The result of an elementwise operation keeps the memory order of its operands' dimensions, as in
// PyTorch. For example, Exp(x.T()) has the strides of x.T(): it is not contiguous, and no element
// was moved to another row. If the operands disagree about two dimensions, the first operand that
// has several elements along both decides. [Tensor.To] keeps the order too. [Tensor.Clone] and
// [Tensor.Contiguous] return contiguous tensors, as [Data], [Bytes] and package dist require.
//
// # Concurrent writes
//
// A method that changes its receiver panics if the receiver's dtype cannot hold the result: the
// categories bool, integer, float and complex ascend, and the result's category must not be above
// the receiver's. It also panics if several indices refer to one element, as after [Tensor.Expand].
//
// Several processes may use one tensor at the same time. An element of at most 8 bytes is read and
// written whole. But a method reads, computes and writes, so it overwrites concurrent writes of
// other processes: if two processes add 1 at once, the element may grow by only 1.
// [Tensor.AddAtomic] and the Atomic options of package optim lose no addition. A method changes its
// elements one after the other, so another process may observe a partial change.
//
// Goroutines of one process must use a lock or AddAtomic, because Go's memory model forbids such
// data races.
//
// # The trap
//
// The slice that [Data] returns is borrowed. When the tensor is closed or collected, its memory may
// be reused for another tensor or process. When the tensor is shared, its elements move. In both
// cases the slice still points to the old memory. A caller must keep the tensor reachable while it
// uses the slice ([runtime.KeepAlive]), and must call Data again after [Tensor.Share].
//
// A process must close each shared tensor that it creates or receives, and each view of it. The
// garbage collector closes a forgotten tensor, but late. In t.T().Select(0, 1), the view t.T() is
// forgotten.
package tensor
