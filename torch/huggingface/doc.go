// Package huggingface lets the Go workers of a PyTorch DataLoader read the data sets of Hugging
// Face's library datasets. A program links it by importing it for its side effect:
//
//	import _ "github.com/shoal-mp/shoal/torch/huggingface"
//
//	func main() { torch.Child{}.Main() } // Python starts it as its worker
//
// Start with [torch.Child.Main].
//
// The pickle that a DataLoader sends to its workers holds a Dataset, which names the Arrow files
// that it maps. Go maps the same files, so a sample is first copied into its batch. A Dataset is
// read if it has no format or the format torch, and if its columns are numbers, booleans, strings,
// or lists or structs of them. Python loads every other one, and the first worker prints the
// reason.
//
// [torch.Child.Main]: https://pkg.go.dev/github.com/shoal-mp/shoal/torch#Child.Main
package huggingface
