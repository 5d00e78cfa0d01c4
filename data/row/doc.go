// Package row defines the columns and errors that packages jsonl and parquet share. A [Column]
// selects a column of a table. An [Error] identifies a row that cannot be converted to a sample.
//
//	columns := []row.Column{{Name: "ids", DType: new(tensor.Int64)}}
//	train, err := jsonl.Open(jsonl.Options{Columns: columns}, "train.jsonl")
//	if err != nil {
//		return err
//	}
//	defer train.Close()
//	sample, err := data.Value(ctx, train, 17)
//	var bad *row.Error
//	if errors.As(err, &bad) {
//		fmt.Println("skipped line", bad.Number, "of", bad.Path)
//	} else if err != nil {
//		return err
//	} else {
//		fmt.Println(sample)
//	}
//
// Start with [Column] and pass it to [jsonl.Open] or [parquet.Open].
//
// A list of numbers becomes a tensor as in torch.tensor: Int64, or Float32 if one of the numbers
// has a fraction. A column with both kinds of rows should have a DType.
//
// [jsonl.Open]: https://pkg.go.dev/github.com/shoal-mp/shoal/data/jsonl#Open
// [parquet.Open]: https://pkg.go.dev/github.com/shoal-mp/shoal/data/parquet#Open
package row
