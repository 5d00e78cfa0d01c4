// Package pt reads and writes the files of torch.save without PyTorch.
//
//	net := nn.NewLinear(784, 10, tensor.NewGenerator(1))
//	if err := pt.Save("model.pt", nn.State(net)); err != nil {
//		return err
//	}
//	v, err := pt.Load("model.pt", pt.Options{}) // also of torch.save(model)
//	if err != nil {
//		return err
//	}
//	state, _, err := pt.StateDict(v)
//	if err != nil {
//		return err
//	}
//	fmt.Println(state["weight"].Shape()) // [10 784]
//
// Start with [Save], [Load] and [StateDict].
//
// PyTorch loads a saved state dict with weights_only=True. [Marshal] and [Unmarshal] exchange
// pickles with pickle.loads and pickle.dumps. [torch.As] converts a loaded value to a Go type. The
// package does not depend on package torch, which uses sockets.
//
// [Encode] writes to an [io.Writer]. [Decode] needs an [io.ReaderAt], because the directory of a
// file is at its end.
//
// Loading a file is safe: the package never imports or executes anything that a file names. An
// object of an unknown Python class becomes a [*python.Record].
//
// With Options.Mmap, the elements of the tensors are pages of the file. The file may be removed
// or replaced, but must not be truncated: if another process truncates it, reading the tensors
// faults. [tensor.Catch] turns such a fault into an error.
//
// [torch.As]: https://pkg.go.dev/github.com/shoal-mp/shoal/torch#As
package pt
