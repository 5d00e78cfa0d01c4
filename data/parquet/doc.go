// Package parquet reads files of Parquet as data sets: a row is a sample.
//
//	train, err := parquet.Open(parquet.Options{Columns: []row.Column{{Name: "text"}, {Name: "label"}}}, "train.parquet")
//	if err != nil {
//		return err
//	}
//	defer train.Close()
//	sample, err := data.Value(ctx, train, 17) // a map with a string and a number
//
// Open reads the footers of the files. The set reads the wanted columns of some hundred rows at a
// time, and keeps them in memory up to Options.Cache. So an epoch in the order of the file reads
// each row once.
//
// The trap: Parquet is a format for reading in order. A shuffled epoch of a file that is larger
// than Options.Cache reads a page for nearly each sample. Shuffle in blocks, or write small row
// groups.
package parquet
