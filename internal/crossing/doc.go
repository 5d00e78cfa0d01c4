// Package crossing takes messages with blocks from one domain to another, by a link. A message has
// the number of each block there, or the bytes of a block that the receiver copies. The bytes are
// written from the sender's arena and read into the receiver's, so a message may be of any size.
package crossing
