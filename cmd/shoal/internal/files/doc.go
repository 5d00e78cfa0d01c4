// Package files implements shoal inspect and shoal convert. It reads and writes named tensors in
// all file formats that Shoal supports.
package files
