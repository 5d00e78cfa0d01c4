// Package pickle reads and writes the values that Python programs send through shared memory.
//
//	rollouts, err := ipc.Lookup[*ipc.Queue[pickle.Value]]("rollouts")
//	if err != nil {
//		return err
//	}
//	defer rollouts.Close()
//	message, err := rollouts.Get(ctx) // of rollouts.put({"step": 7}) in Python
//	if err != nil {
//		return err
//	}
//	defer message.Close()
//	v, err := message.Decode()
//	if err != nil {
//		return err
//	}
//	fmt.Println(v.(*python.Dict).Get("step")) // 7 true
//
// Start with [Encode], [Value.Decode] and [DecodeAs].
//
// A Python program that imports shoal.multiprocessing and a Go program may be processes of one
// domain, and use the same queues, pipes and names. An element that Python puts into a queue is a
// [Value] for Go: a pickle with its tensors beside it. [Value.Decode] returns it as Go values, and
// [Encode] returns the Value for Python.
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
