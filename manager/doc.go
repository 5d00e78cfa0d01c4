// Package manager keeps objects in one process, the server, and lets other processes access them by
// proxies: dicts, lists, sets, numbers, queues, locks and similar objects, and objects of types of
// the program.
//
//	m, err := manager.Start(ctx) // a server process
//	if err != nil {
//		return err
//	}
//	defer m.Close()
//	scores, err := manager.NewDict[string, float64](ctx, m)
//	if err != nil {
//		return err
//	}
//	defer scores.Close()
//	total, err := scores.Add(ctx, "a", 0.5) // atomic, in any process
//	if err != nil {
//		return err
//	}
//	fmt.Println(total)
//
// Start with [Start], [NewDict] and [Dict.Add].
//
// [New] runs the server in this process. Any process with the proxy of an object may use it.
//
// On one machine, a shared tensor, an ipc.Queue or an ipc.Mutex does most of this without a server.
// A manager should be used for values without a fixed size or type, for updates of several objects
// at once ([Manager.Txn]), and across machines (package manager/remote).
//
// # Proxies
//
// A proxy can be sent to other processes: as an argument, through a queue, and in other objects of
// the manager, so that a Dict may contain Lists. An object lives as long as a process or a message
// has a proxy of it; the proxies of a killed process do not count. The server does not know the
// types of values: it handles them as encodings and references to blocks of shared memory, which it
// does not copy.
//
// # Kinds
//
// A server has one table of object kinds, each with a constructor and named methods. This package
// adds its own kinds when the program starts, and [Register] adds a type of the program. An object
// of such a type is a full object of the server: its proxies can be sent, its methods run one at a
// time, and calls can be canceled. It takes part in transactions if it implements [Saver].
//
// # Calls
//
// The server completes one call on an object before it starts the next. On the server's machine a
// call uses rings in shared memory. A process has one pair of rings per concurrent call. An Array
// and a Value are read from shared memory without a call.
//
// When the context of a call is done, the client notifies the server. If the server has granted a
// lock or a permit or delivered a value of a queue too late, it takes it back. A call of another
// kind, such as Set, may or may not have been executed.
//
// # Deaths
//
// When a client dies, the next holder of its Mutex gets [ErrOwnerDied], a Barrier at which it
// waited breaks, its permits are returned, Join reports its unfinished tasks, and the server rolls
// back its transaction. The errors identify the process. When the server dies, every call returns
// [ErrServerDied]. A client or a server that is stopped (SIGSTOP) blocks the calls that wait for it
// until their deadlines. When a method of a type of the program panics, its caller gets a
// [PanicError], and the server continues.
//
// # The trap
//
// d.Set(ctx, k, f(d.Get(ctx, k))) is two calls. As in Python, it overwrites an update that another
// process makes in between. Use Add, CompareAndSwap, a method of your own type, or Txn instead.
package manager
