// Package tokens reads files of tokenized text as windows of equal length, to train language
// models.
//
//	train, err := tokens.Open("train.bin", tokens.Options{Length: 1024})
//	if err != nil {
//		return err
//	}
//	defer train.Close()
//	loader := data.NewLoader(train, data.Options{BatchSize: 8, Shuffle: true})
//	defer loader.Close()
//	for batch, err := range loader.Batches(ctx) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(batch[0].Shape(), batch[1].Shape()) // [8 1024] [8 1024]
//		batch.Close()
//	}
//
// Start with [Open] and [data.NewLoader].
//
// A sample consists of two tensors, (Length) Int64 each: the tokens of a window, and the targets,
// which are the same tokens shifted by one.
//
// A file without a header does not declare the dtype of its tokens. Options.DType must be set
// unless it is Uint16. Options.Vocabulary should be set too, so that a wrong dtype is an error.
package tokens
