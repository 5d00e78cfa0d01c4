// Package nats takes queues and named values beyond one machine, by a NATS broker that keeps them.
//
// A [Queue] has the methods of ipc.Queue, and carries the same types: numbers, structs, tensors.
// The broker stores what is put, so processes come and go, and are killed, at any time:
//
//	conn, err := nats.Connect(ctx, "nats://host:4222", nats.Options{})
//	jobs, err := nats.OpenQueue[Job](ctx, conn, "jobs", nats.QueueOptions{})
//	err = jobs.Put(ctx, job)                 // on one machine
//	for job, err := range jobs.All(ctx) {}   // on another: acknowledged when the body is done
//
// A [Store] keeps values by name, each with a version, and is where parameters or the values of a
// manager go that are to outlive processes and hosts.
//
// "shoal broker" starts a broker, of one node or of three. Any NATS server from 2.11 on with
// JetStream will do.
//
// # Guarantees
//
// A Put that returned nil is stored: on the disk of the broker, or with most of the replicas. It
// is stored once, however often the connection was cut during the Put. A value is taken by one
// consumer at a time, and leaves the queue when that one acknowledges it:
//
//   - [Queue.Next] returns a [Delivery]. Its value comes back, to any consumer, unless its Ack
//     returns nil: at least once. After an Ack that returned nil, it never comes back.
//   - [Queue.All] acknowledges each value when the loop's body is done: at least once as well.
//   - [Queue.Get], [Queue.TryGet] and [Queue.GetN] acknowledge before they return: the value is
//     the caller's, as with ipc, and lost with its process.
//
// A value that was given out QueueOptions.MaxDeliveries times and never acknowledged becomes a
// [DeadLetter].
//
// # The trap
//
// Values go by copy. The tensor that a Get returns is another one than that which was put, in this
// machine's memory, and the caller closes it.
package nats
