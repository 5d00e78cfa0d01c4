// Package python is the values of Python that have no type of their own in Go, as pickles and the
// files of torch.save have them. Packages torch and pt send, save and return them.
//
//	t := python.Tuple{"step", 3, python.NewDict("lr", 0.1)}
//	err := conn.Send(ctx, t) // ("step", 3, {"lr": 0.1})
//
// A value is data. Nothing that it names is looked up, imported or run.
package python
