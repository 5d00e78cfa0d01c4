// Package python has types for the values of Python that Go has no type for, such as tuples and
// sets. They come from pickles and from files of torch.save. Packages torch and pt send, save and
// return them.
//
//	t := python.Tuple{"step", 3, python.NewDict("lr", 0.1)}
//	err := conn.Send(ctx, t) // ("step", 3, {"lr": 0.1})
//
// A value is data. No package looks up, imports or runs the classes and functions that it names.
package python
