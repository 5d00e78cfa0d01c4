// Package parquet reads files of Parquet as data sets: a row is a sample.
//
//	train, err := parquet.Open(parquet.Options{Columns: []row.Column{{Name: "text"}, {Name: "label"}}}, "train.parquet")
//	if err != nil {
//		return err
//	}
//	defer train.Close()
//	sample, err := data.Value(ctx, train, 17) // a map with a string and a number
//
// Opening reads the footers. Rows are read some hundreds at a time, of the wanted columns alone,
// and stay in memory while there is room: in their order they are read once.
//
// The trap: a file of Parquet is written to be read in its order. A shuffled epoch of a file that
// is larger than Options.Cache reads a page for nearly each sample; shuffle in blocks, or write
// small row groups.
package parquet
