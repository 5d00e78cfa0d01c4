// Package words formats numbers for people and escapes text for terminals.
//
//	fmt.Printf("%s in %s\n", words.Bytes(n), words.Count(k, "tensor"))
//
// Formatted numbers are rounded and should not be parsed.
package words
