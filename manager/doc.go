// Package manager keeps values in one process and lets others work on them by proxy: dicts, lists,
// sets, numbers, queues, what one synchronises by, and objects of the program's own types.
//
//	m, err := manager.Start(ctx) // a server in a process of its own; New has it on goroutines of this one
//	if err != nil {
//		return err
//	}
//	defer m.Close()
//	scores, err := manager.NewDict[string, float64](ctx, m)
//	…
//	total, err := scores.Add(ctx, "a", 0.5) // in any process that has the proxy: one call, so no addition is lost
//
// In one machine a shared tensor, an ipc.Queue or an ipc.Mutex does most of this without a server.
// A manager is for what has no fixed size or type, for changes of several things at once
// ([Manager.Txn]), and for other machines (package manager/remote).
//
// # Proxies
//
// A proxy travels: as an argument, through a queue, and in other objects of the manager, so that a
// Dict may hold Lists. An object lives as long as there is a proxy of it anywhere, in a process or
// in a message; a process that is killed has none. The server does not know the types of what it
// keeps: a value is its bytes, and the shared memory that it holds, which is not copied.
//
// # Kinds
//
// What objects of a kind can do is a row of one table in the server: a constructor, and methods by
// name. The kinds of this package are entered there when the program begins, and [Register] enters
// a type of the program in the same way. An own type has what a Dict has: proxies that travel, one
// call at a time, cancellation, and with a method Save ([Saver]) a part in transactions.
//
// # Calls
//
// A call is done whole before another call of the same object begins. In the server's machine it
// goes through rings in shared memory, one pair of rings for each call that a process has going; an
// Array or a Value is read from shared memory with no call at all.
//
// When the context of a call ends, the server is told, and what it gave too late is taken back: a
// lock, a permit, a value out of a queue. Whether another call, such as a Set, was done is open
// then.
//
// # Deaths
//
// A client that dies gives back what it had. A Mutex passes on with [ErrOwnerDied], a Barrier
// breaks, permits return, a Join says which tasks are lost, and a transaction is undone; errors
// name the process. When the server dies every call ends with [ErrServerDied]; a client that is
// stopped, or a stopped server, holds up the calls that wait for it until their deadlines. A method
// of an own type that panics is a [PanicError] for its caller only.
//
// # The trap
//
// d.Set(ctx, k, f(d.Get(ctx, k))) is two calls, and loses what others do between them, as in
// Python: use Add, CompareAndSwap, a method of an own type, or Txn.
package manager
