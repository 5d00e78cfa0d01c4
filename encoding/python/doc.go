// Package python has types for Python values without an equivalent in Go, such as tuples and sets.
// They are read from pickles and from files of torch.save. Packages torch and pt send, save and
// return them.
//
//	t := python.Tuple{"step", 3, python.NewDict("lr", 0.1)}
//	err := conn.Send(ctx, t) // ("step", 3, {"lr": 0.1})
//
// Values are pure data. The classes and functions that they name are never imported or executed.
package python
