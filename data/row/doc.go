// Package row has the columns and errors that packages jsonl and parquet share. A [Column] names a
// wanted column of a table. An [Error] names a row that is not a sample.
//
//	columns := []row.Column{{Name: "ids", DType: new(tensor.Int64)}, {Name: "weight", DType: new(tensor.Float32)}}
//	train, err := jsonl.Open(jsonl.Options{Columns: columns}, "train.jsonl")
//
// The trap: a list of numbers becomes a tensor as in torch.tensor: Int64, or Float32 if one of the
// numbers has a fraction. A column that has both kinds of rows needs a DType.
package row
