// Package jsonl reads JSON Lines files as data sets: each line is a sample.
//
//	train, err := jsonl.Open(jsonl.Options{}, "train-0.jsonl", "train-1.jsonl")
//	if err != nil {
//		return err
//	}
//	defer train.Close()
//	line, err := data.Value(ctx, train, 17)
//	if err != nil {
//		return err
//	}
//	fmt.Println(line) // a map, if the line is an object
//
// Start with [Open], [data.Value] and [data.NewLoader].
//
// [Open] reads the files once to find the beginnings of the lines, which takes eight bytes of
// memory a line. Lines are read and decoded on demand.
//
// A file may begin with a UTF-8 byte order mark. A file that is compressed with gzip or zstd, which
// is detected from its content, is unpacked to a temporary file in [os.TempDir] by each worker that
// opens it.
//
// The last line counts even without a newline. If another program is still writing it, decoding the
// incomplete line is an error.
package jsonl
