// Package row defines the columns and errors that packages jsonl and parquet share. A [Column]
// selects a column of a table. An [Error] identifies a row that cannot be converted to a sample.
//
//	columns := []row.Column{{Name: "ids", DType: new(tensor.Int64)}, {Name: "weight", DType: new(tensor.Float32)}}
//	train, err := jsonl.Open(jsonl.Options{Columns: columns}, "train.jsonl")
//
// A list of numbers becomes a tensor as in torch.tensor: Int64, or Float32 if one of the numbers
// has a fraction. A column with both kinds of rows should have a DType.
package row
