// Package pt reads and writes the files of torch.save, without PyTorch. A program that only needs
// such files does not link package torch, which has sockets. [torch.As] makes a value of a Go type
// of what Load returns.
//
//	err := pt.Save("model.pt", nn.State(net))        // torch.load(…, weights_only=True) reads it
//	v, err := pt.Load("theirs.pt", pt.Options{})     // any file, one of torch.save(model) as well
//	state, rest, err := pt.StateDict(v)              // its tensors, by the names of its state_dict()
//	b, err := pt.Marshal(state, 4)                   // pickle.loads reads it; Unmarshal what pickle.dumps wrote
//
// [Encode] writes to an io.Writer; [Decode] reads from an io.ReaderAt, since the directory of a
// file is at its end.
//
// A file is data: the package looks up, imports and runs nothing that the file names. An object of
// a class that only Python knows becomes a [*python.Record].
//
// The trap: with Options.Mmap the elements of the tensors are the file. The file may be removed or
// replaced. If another process cuts the file short, reading the tensors faults; [tensor.Catch]
// makes an error of such a fault.
//
// [torch.As]: https://pkg.go.dev/github.com/shoal-mp/shoal/torch#As
package pt
