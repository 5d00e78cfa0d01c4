// Package jsonl reads files of lines of JSON as data sets: a line is a sample.
//
//	train, err := jsonl.Open(jsonl.Options{}, "train-0.jsonl", "train-1.jsonl")
//	if err != nil {
//		return err
//	}
//	defer train.Close()
//	line, err := data.Value(ctx, train, 17) // a map, if the line is an object
//
// Open reads the files once to find where their lines begin, which takes eight bytes of memory a
// line. A line is read and decoded when its sample is asked for.
//
// A file may begin with a byte order mark of UTF-8. A file that is compressed by gzip or zstd, as
// its content says, is unpacked to a temporary file (os.TempDir) when it is opened, by each worker.
//
// The trap: the last line counts even without a newline. If another program is still writing it,
// the half line is an error when it is decoded.
package jsonl
