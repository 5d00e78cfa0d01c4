// Package pt reads and writes the files of torch.save without PyTorch. It does not depend on
// package torch, which uses sockets. [torch.As] converts a loaded value to a Go type.
//
//	err := pt.Save("model.pt", nn.State(net))        // for torch.load with weights_only=True
//	v, err := pt.Load("theirs.pt", pt.Options{})     // any file, including torch.save(model)
//	state, rest, err := pt.StateDict(v)              // the tensors, by their names in state_dict()
//	b, err := pt.Marshal(state, 4)                   // for pickle.loads; see also Unmarshal
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
