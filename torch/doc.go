// Package torch exchanges tensors with Python processes over the wire protocol of
// torch.multiprocessing.
//
//	p, err := torch.Spawn(ctx, "worker:run", 3) // run(conn, 3) in worker.py
//	if err != nil {
//		return err
//	}
//	defer p.Close()
//	t, err := torch.Zeros(tensor.Float32, 1024) // PyTorch can map its memory
//	if err != nil {
//		return err
//	}
//	defer t.Close()
//	if err := p.Conn.Send(ctx, t); err != nil { // conn.recv() has the memory
//		return err
//	}
//	if err := p.Wait(ctx); err != nil { // the error has the traceback
//		return err
//	}
//	fmt.Println(t.Sum()) // 3072
//
// Start with [Spawn], [Dial] and [Listen].
//
// Go and unmodified PyTorch processes on one machine share the memory of their tensors: a message
// carries a handle, and no element is copied. Neither side has to install a package. The protocol
// is defined by
//
//	https://github.com/pytorch/pytorch/blob/v2.9.0/torch/multiprocessing/reductions.py
//	https://github.com/python/cpython/blob/v3.13.0/Lib/multiprocessing/connection.py
//
// [Spawn] starts a Python function in a new process, as torch.multiprocessing.Process does. The
// function's first argument is the other end of [Process.Conn]:
//
//	# worker.py
//	def run(conn, k):
//	    conn.recv().add_(k)
//
// [Dial] and [Listen] connect to processes that already run; they correspond to Client and Listener
// of multiprocessing.connection. docs/torch.md lists the values that can be sent and received.
// Package encoding/pt writes and reads the files of torch.save. [As] converts a received value to a
// Go type.
//
// # Security
//
// PyTorch executes code that a message names, because messages are pickles. A program must
// therefore connect only to processes that it trusts, and only if they may trust it; the authkey
// ([Options.AuthKey]) authenticates them to each other. This package never executes code from a
// message: a name that is not on its list of allowed names is an error that wraps [ErrGlobal].
//
// A tensor received from PyTorch lies in a file that PyTorch can truncate. Access to truncated
// memory ends the program with SIGBUS, unless it happens within [Guard], which returns an error
// instead.
package torch
