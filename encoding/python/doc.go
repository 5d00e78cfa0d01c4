// Package python has types for Python values without an equivalent in Go, such as tuples and sets.
// They are read from pickles and from files of torch.save. Packages torch and pt send, save and
// return them.
//
//	tags, err := python.NewSet(false, "small", "red")
//	if err != nil {
//		return err
//	}
//	v := python.Tuple{"step", 3, python.NewDict("lr", 0.1), tags}
//	b, err := pt.Marshal(v, pt.MarshalOptions{}) // for pickle.loads
//	if err != nil {
//		return err
//	}
//	fmt.Println(len(b))
//
// Start with [NewDict], [NewSet] and [torch.As].
//
// Values are pure data. The classes and functions that they name are never imported or executed.
//
// [torch.As]: https://pkg.go.dev/github.com/shoal-mp/shoal/torch#As
package python
