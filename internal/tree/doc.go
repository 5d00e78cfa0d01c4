// Package tree takes values of any structure apart into tensors and a description, and puts them
// together again: what the pytrees of PyTorch and JAX do. A [Value] is both; [Flatten] makes one,
// [Collate] makes one of several as torch's default_collate does, and [Value.Into] and [Value.Any]
// are the way back. So who moves tensors between processes moves any value: the description, a
// string, travels beside them.
package tree
