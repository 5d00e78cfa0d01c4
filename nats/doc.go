// Package nats provides queues and key-value stores on a NATS broker.
//
//	conn, err := nats.Connect(ctx, "nats://host:4222", nats.Options{})
//	if err != nil {
//		return err
//	}
//	defer conn.Close()
//	jobs, err := nats.OpenQueue[string](ctx, conn, "jobs", nats.QueueOptions{})
//	if err != nil {
//		return err
//	}
//	defer jobs.Close()
//	if err := jobs.Put(ctx, "resize cat.png"); err != nil {
//		return err
//	}
//	job, err := jobs.Get(ctx) // on any machine
//	if err != nil {
//		return err
//	}
//	fmt.Println(job)
//
// Start with [Connect], [OpenQueue] and [OpenStore].
//
// Queues and stores span machines, and the broker persists them. A [Queue] has the methods of
// ipc.Queue and carries the same types: numbers, structs, tensors. The broker stores each value, so
// processes may start, exit and be killed at any time.
//
// A [Store] keeps versioned values by key. Use it for parameters, or for values of a manager that
// must outlive processes and hosts.
//
// "shoal broker" starts a broker of one or three nodes. Any NATS server since version 2.11 with
// JetStream works too.
//
// # Guarantees
//
// If Put returns nil, the value is stored: on the disk of the broker, or by a majority of the
// replicas. It is stored exactly once, even if the connection broke during the Put. One consumer at
// a time holds a value, and the value leaves the queue when the consumer acknowledges it:
//
//   - [Queue.Next] returns a [Delivery]. Its value is redelivered, to any consumer, unless
//     [Delivery.Ack] returns nil: at-least-once delivery. After an Ack that returned nil, the value
//     is never delivered again.
//   - [Queue.All] acknowledges each value at the end of the loop's body: at-least-once delivery.
//   - [Queue.Get], [Queue.TryGet] and [Queue.GetN] acknowledge before they return, as with ipc:
//     at-most-once delivery. The value is lost if the process dies.
//
// A value that was delivered QueueOptions.MaxDeliveries times without being acknowledged becomes a
// [DeadLetter].
//
// # The trap
//
// Values are copied. Get returns a new tensor in this machine's memory, not the one passed to Put.
// The receiver must close it, and the sender must still close its own.
package nats
