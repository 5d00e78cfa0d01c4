// Package pickle reads and writes the values that Python programs send through shared memory.
//
// A Python program that imports shoal.multiprocessing and a Go program may be processes of one
// domain, and use the same queues, pipes and names. An element that Python puts into a queue is a
// [Value] for Go: a pickle with its tensors beside it. [Value.Decode] returns it as Go values, and
// [Encode] returns the Value for Python:
//
//	q, err := ipc.Lookup[*ipc.Queue[pickle.Value]]("rollouts")
//	message, err := q.Get(ctx)
//	defer message.Close()
//	v, err := message.Decode() // a *python.Dict, a []any, a *tensor.Tensor, …
//
// [DecodeAs] returns it as a Go type of the program, such as a struct for a dict.
//
// A pickle is decoded as data. Nothing in it is executed: an object of an unknown class is a
// python.Record with its class name and its attributes, or an error.
//
// # The trap
//
// The tensors of a decoded value belong to its Value. After [Value.Close] they are closed too.
package pickle
