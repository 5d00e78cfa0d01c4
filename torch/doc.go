// Package torch is a peer of PyTorch: it speaks what torch.multiprocessing speaks, so that Go and
// unmodified Python processes of one machine work on the same tensors, without a copy and without a
// package to install on either side.
//
// A Go program starts a Python function the way torch.multiprocessing.Process does, and talks to
// it:
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
// Or it meets one that runs already, through [Dial] and [Listen], which are
// multiprocessing.connection's Client and Listener. What crosses, and what does not, is in
// docs/torch.md. [Save] and [Load] write and read the files of torch.save; docs/files.md has those,
// and other formats.
//
// # The trap
//
// PyTorch executes what it receives: connect only to processes that may control yours and the other
// way round, which is what the authkey is for. This package never executes anything: a name in a
// message that is not on its list is an error.
//
// Memory that came from PyTorch is a file that PyTorch can truncate; touching it then is a fault.
// [Guard] turns that into an error.
package torch
