// Package pt reads and writes the files of torch.save, without PyTorch. It has no sockets, so a
// program that needs nothing else of PyTorch needs not package torch. There, [torch.Load] is Load
// as a Go type.
//
//	err := pt.Save("model.pt", nn.State(net))        // torch.load(…, weights_only=True) reads it
//	v, err := pt.Load("theirs.pt", pt.Options{})     // any file, one of torch.save(model) as well
//	state, rest, err := pt.StateDict(v)              // its tensors, by the names of its state_dict()
//	b, err := pt.Marshal(state, 4)                   // pickle.loads reads it; Unmarshal what pickle.dumps wrote
//
// [Encode] writes to an io.Writer; [Decode] reads from an io.ReaderAt, since the directory of a
// file is at its end.
//
// A file is data: nothing that it names is looked up, imported or run. What only Python knows is a
// [*python.Record].
//
// The trap: what Load has mapped (Options.Mmap) is the file. It may be removed or replaced, but a
// process that cuts it short does so under the tensors, and only [tensor.Catch] makes an error of
// that in all cases.
//
// [torch.Load]: https://pkg.go.dev/github.com/shoal-mp/shoal/torch#Load
package pt
