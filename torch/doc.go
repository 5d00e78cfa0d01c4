// Package torch is a peer of PyTorch: it speaks the protocol of torch.multiprocessing. So Go and
// unmodified Python processes of one machine work on the same tensors. Nothing is copied, and
// neither side installs a package.
//
// A Go program starts a Python function as torch.multiprocessing.Process does, and talks to it:
//
//	// worker.py:  def run(conn, k):
//	//                 t = conn.recv(); t.mul_(k); conn.send(t.sum())
//	p, err := torch.Spawn(ctx, "worker:run", 3)
//	if err != nil {
//		return err
//	}
//	defer p.Close()
//	t, err := torch.Empty(tensor.Float32, 1024) // in memory that PyTorch can map
//	…
//	err = p.Conn.Send(ctx, t)                  // a handle travels
//	sum, err := torch.As[*tensor.Tensor](p.Conn.Recv(ctx))
//	err = p.Wait(ctx)                          // a *ProcessError with the traceback, if it failed
//
// Or it meets a process that runs already, through [Dial] and [Listen], which are
// multiprocessing.connection's Client and Listener. docs/torch.md lists the values that cross and
// those that do not. Package encoding/pt writes and reads the files of torch.save, and [As]
// converts their values to a type of Go's.
//
// # The trap
//
// PyTorch executes the messages that it receives. So connect only to processes that may control
// yours, and only if yours may control them: the authkey is for that. This package never executes
// anything: a name in a message that is not on its list is an error.
//
// Memory that came from PyTorch is a file that PyTorch can truncate. A program that then touches it
// faults; [Guard] makes the fault an error.
package torch
