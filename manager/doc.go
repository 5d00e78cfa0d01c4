// Package manager keeps values in one process, the server, and lets other processes work on them by
// proxy: dicts, lists, sets, numbers, queues, locks and the like, and objects of the program's own
// types.
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
// A manager is for values without a fixed size or type, for changes of several objects at once
// ([Manager.Txn]), and for other machines (package manager/remote).
//
// # Proxies
//
// A proxy travels: as an argument, through a queue, and in other objects of the manager, so that a
// Dict may hold Lists. An object lives as long as a process or a message has a proxy of it; a
// killed process has none. The server does not know the types of its values: to it a value is
// bytes, and blocks of shared memory, which it does not copy.
//
// # Kinds
//
// A server has one table of kinds of objects, with a constructor and methods by name for each. This
// package enters its own kinds when the program begins, and [Register] enters a type of the
// program. An object of such a type has all that a Dict has: proxies that travel, one call at a
// time and cancellation. With a method Save ([Saver]) it takes part in transactions.
//
// # Calls
//
// The server ends one call of an object before it begins the next. In the server's machine a call
// goes through rings in shared memory. A process has one pair of rings for each call that it makes
// at the same time. An Array and a Value are read from shared memory without a call.
//
// When the context of a call ends, the client tells the server. The server takes back a lock, a
// permit or a value of a queue that it gave too late. A call of another kind, such as a Set, may
// have been done or not.
//
// # Deaths
//
// When a client dies, the next holder of its Mutex gets ErrOwnerDied, a Barrier at which it waited
// breaks, its permits return, a Join says which tasks are lost, and the server undoes its
// transaction. The errors name the process. When the server dies, every call ends with
// ErrServerDied. A client or a server that is stopped (SIGSTOP) holds up the calls that wait for it
// until their deadlines. When a method of the program's own type panics, its caller gets a
// PanicError, and the server goes on.
//
// # The trap
//
// d.Set(ctx, k, f(d.Get(ctx, k))) is two calls. It overwrites a change that another process makes
// between them, as in Python. Use Add, CompareAndSwap, a method of your own type, or Txn.
package manager
