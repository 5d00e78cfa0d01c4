// Package ipc is how processes talk and wait for each other: queues and pipes of Go values, locks
// and the like, over memory that they share.
//
// A [Queue] has two ends, a [Sender] and a [Receiver], which travel to other processes like any
// other value:
//
//	q, err := ipc.NewQueue[Job](8)
//	if err != nil {
//		return err
//	}
//	defer q.Close()
//	err = q.Put(ctx, Job{Name: "a"})            // waits while 8 are waiting
//	for job, err := range q.Receiver().All(ctx) // in another process: ends when nobody can put any more
//
// A message is a copy of its value, written by package wire. Shared memory that a value holds, such
// as the elements of a tensor, is not copied: the message holds that memory from Put until Get,
// whatever becomes of the sender.
//
// # Ends
//
// The ends of a queue are counted, in every process and in every message. When the last sending end
// is closed, or its process was killed, receivers get what is left and then [ErrClosed]. When the
// last receiving end is closed, puts return ErrClosed. A *Queue is both ends: a consumer that has a
// Queue keeps it open for itself, and waits for ever for a producer that died. Give consumers a
// Receiver and producers a Sender, and close the Queue once they have theirs.
//
// # Names
//
// [Bind] gives a value a name, under which every process of the domain finds it with [Lookup]: a
// process that has joined by a socket does, and the name outlives the process that bound it. A
// [Memory] is bytes, with or without a name, which tensor.FromBuffer wraps.
//
// # The latest value
//
// A [Latest] is one value that processes replace while others use the value before: weights that
// are loaded anew while a service runs. A Store needs no reader, and a process that is started
// later, or again, finds the value that is the newest then.
//
// # Synchronising
//
// A [Mutex], [RWMutex], [RecursiveMutex], [Semaphore], [Cond], [Event], [Barrier], [Once], [Value]
// and [Array] travel in the same way. Every wait takes a context. A process that is killed holds
// nobody up: its lock goes to the next one with [ErrOwnerDied], its permits come back, its barrier
// is broken, and the error is a *shm.PeerError that says which process it was.
//
//	err := m.Lock(ctx)
//	if errors.Is(err, ipc.ErrOwnerDied) { // we hold it, and another process died while it did
//		repair(data)
//		err = m.MarkConsistent()
//	}
//	if err != nil {
//		return err
//	}
//	defer m.Unlock()
//
// # The trap
//
// Values are copied, blocks are shared. A receiver that changes a number changes its own copy; a
// receiver that changes an element of a tensor changes it for everybody. The receiver closes what a
// Get returns, and the sender closes what it has put.
package ipc
