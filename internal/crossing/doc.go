// Package crossing sends messages with blocks of shared memory from one domain to another over a
// link. A message contains, for each block, a number that the receiver must translate or the bytes
// of a copy. The bytes are written from the sender's arena and read into the receiver's arena
// without an intermediate buffer, so a message may have any size.
package crossing
