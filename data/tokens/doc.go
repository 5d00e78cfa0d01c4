// Package tokens reads tokenised text as windows of one length: what a language model is trained
// on.
//
//	train, err := tokens.Open("train.bin", tokens.Options{Length: 1024})
//	if err != nil {
//		return err
//	}
//	defer train.Close()
//	loader := data.NewLoader(train, data.Options{BatchSize: 8, Shuffle: true})
//
// A sample is Length tokens, and as many that each come one token later: (Length) int64 both, as
// embeddings and losses take them.
//
// The trap: a file without a header does not say of what type its tokens are. Name the DType, and
// the Vocabulary, so that a wrong one is found out.
package tokens
