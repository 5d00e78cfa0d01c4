// Package row says which columns of a table are wanted, and which of its rows is no sample: of
// lines of JSON, for package jsonl, and of rows of Parquet, for package parquet.
//
//	columns := []row.Column{{Name: "ids", DType: new(tensor.Int64)}, {Name: "weight", DType: new(tensor.Float32)}}
//	train, err := jsonl.Open(jsonl.Options{Columns: columns}, "train.jsonl")
//
// The trap: a list of numbers becomes a tensor as in torch.tensor: of int64, or of float32 if one
// of the numbers has a fraction. A column whose rows are now of one kind and now of the other needs
// a DType.
package row
