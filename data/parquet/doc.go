// Package parquet reads Parquet files as data sets: each row is a sample.
//
//	opts := parquet.Options{Columns: []row.Column{{Name: "text"}, {Name: "id"}}}
//	train, err := parquet.Open(opts, "train.parquet")
//	if err != nil {
//		return err
//	}
//	defer train.Close()
//	sample, err := data.Value(ctx, train, 17)
//	if err != nil {
//		return err
//	}
//	fmt.Println(sample) // a map with a string and a number
//
// Start with [Open], [data.Value] and [data.NewLoader].
//
// [Open] reads the footers of the files. The data set decodes blocks of rows and caches up to
// Options.Cache bytes of them. An epoch in file order decodes each row once. A shuffled epoch
// decodes each row group once, and stores the rows that do not fit into memory in a temporary file
// of up to Options.Spill bytes.
//
// Each process that reads a data set has its own cache and its own temporary file. Both options
// should be set if there are several workers, or if [os.TempDir] is in memory.
package parquet
