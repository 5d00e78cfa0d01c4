// Package ipc provides communication and synchronization between processes over shared memory:
// queues and pipes of Go values, locks, and related primitives.
//
//	q, err := ipc.NewQueue[string](8)
//	if err != nil {
//		return err
//	}
//	defer q.Close()
//	if err := q.Put(ctx, "hello"); err != nil { // waits while 8 are queued
//		return err
//	}
//	s, r := q.Sender(), q.Receiver() // may be sent to other processes
//	s.Close()
//	for v, err := range r.All(ctx) { // until all senders have closed
//		if err != nil {
//			return err
//		}
//		fmt.Println(v)
//	}
//
// Start with [NewQueue], [Queue.Put] and [Receiver.All].
//
// A [Queue] has two ends, a [Sender] and a [Receiver], which can be sent to other processes like
// any other value.
//
// A message is a copy of its value, encoded by package wire. Shared memory within a value, such as
// the elements of a tensor, is not copied: the message holds a reference to that memory from Put
// until Get, even if the sender dies in between.
//
// # Ends
//
// The ends of a queue are reference counted across all processes and queued messages. After the
// last sending end is closed, or its process was killed, receivers drain the queue and then get
// [ErrClosed]. After the last receiving end is closed, Put returns ErrClosed. A *Queue is both
// ends: a consumer that holds a Queue also holds a sending end, so it never learns that the
// producers died. Consumers should therefore get a Receiver, and producers a Sender, and the
// creator should close the Queue once they have theirs.
//
// # Names
//
// [Bind] binds a value to a name, and [Lookup] returns it in every process of the domain, including
// processes that joined by a socket. A name outlives the process that bound it. A [Memory] is a
// byte buffer, with or without a name, that tensor.FromBuffer can wrap.
//
// # The latest value
//
// A [Latest] is a single value that a process can replace while others still use the previous one,
// for example model weights that are reloaded while a service runs. Store does not wait for
// readers. A process that is started or restarted later loads the newest value.
//
// # Synchronization
//
// A [Mutex], [RWMutex], [RecursiveMutex], [Semaphore], [Cond], [Event], [Barrier], [Once], [Value]
// and [Array] can be sent to other processes too. Every blocking operation takes a context. The
// death of a process does not block others: its lock passes to the next process with
// [ErrOwnerDied], its permits are returned, and its barrier breaks. The error is a *shm.PeerError
// that identifies the dead process.
//
//	err := m.Lock(ctx)
//	if errors.Is(err, ipc.ErrOwnerDied) { // the lock is ours, and its previous holder died
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
// Values are copied, but blocks are shared. A receiver that changes a number changes its own copy.
// A receiver that changes an element of a tensor changes it for all processes. The receiver must
// close the result of Get, and the sender must still close the value that it has put.
package ipc
