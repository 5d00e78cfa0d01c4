// Package tokens reads files of tokenised text as windows of one length, to train language models.
//
//	train, err := tokens.Open("train.bin", tokens.Options{Length: 1024})
//	if err != nil {
//		return err
//	}
//	defer train.Close()
//	loader := data.NewLoader(train, data.Options{BatchSize: 8, Shuffle: true})
//
// A sample is two tensors, (Length) Int64 each: the tokens of a window, and the tokens that follow
// each of them, which are the targets.
//
// The trap: a file without a header does not say which dtype its tokens have. Set Options.DType.
// Set Vocabulary as well, so that a wrong dtype is an error.
package tokens
