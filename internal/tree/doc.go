// Package tree decomposes values of any structure into tensors and a description, and rebuilds
// them, like the pytrees of PyTorch and JAX. A [Value] holds both parts. [Flatten] makes a Value of
// one Go value, [Collate] combines several Values to a batch as torch's default_collate does, and
// [Value.Into] and [Value.Any] rebuild a Go value. The description is a string, so code that can
// send tensors to another process can send any value.
package tree
