// Package files is shoal inspect and shoal convert: named tensors in all formats that Shoal reads
// and writes.
package files
