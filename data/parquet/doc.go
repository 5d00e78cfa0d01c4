// Package parquet reads files of Parquet as data sets: a row is a sample.
//
//	train, err := parquet.Open(parquet.Options{Columns: []row.Column{{Name: "text"}, {Name: "label"}}}, "train.parquet")
//	if err != nil {
//		return err
//	}
//	defer train.Close()
//	sample, err := data.Value(ctx, train, 17) // a map with a string and a number
//
// Open reads the footers of the files. The set decodes blocks of rows, and keeps them in memory up
// to Options.Cache. An epoch in the order of the file decodes each row once. A shuffled epoch
// decodes each row group once, and keeps the rows that do not fit into memory in a temporary file,
// up to Options.Spill.
//
// The trap: each process that reads a set has its own cache and its own temporary file. With
// several workers, and with a [os.TempDir] in memory, set both options.
package parquet
