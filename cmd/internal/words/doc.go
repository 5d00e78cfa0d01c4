// Package words writes numbers as people read them, and texts so that they do not move the cursor.
//
//	fmt.Printf("%s in %s\n", words.Bytes(n), words.Count(k, "tensor"))
//
// The trap: what is rounded here is not read back.
package words
