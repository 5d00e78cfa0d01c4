// Package words writes numbers as people read them.
//
//	fmt.Printf("%s in %s\n", words.Bytes(n), words.Count(k, "tensor"))
//
// The trap: what is rounded here is not read back.
package words
