// Package jsonl reads files of lines of JSON as data sets: a line is a sample.
//
//	train, err := jsonl.Open(jsonl.Options{}, "train-0.jsonl", "train-1.jsonl")
//	if err != nil {
//		return err
//	}
//	defer train.Close()
//	line, err := data.Value(ctx, train, 17) // a map, if the line is an object
//
// Opening reads the files once, to know where their lines begin: eight bytes of memory a line. A
// line is read and decoded when it is asked for.
//
// The trap: a line without an end belongs to the file. One that is being written by others is half
// a line, and an error.
package jsonl
