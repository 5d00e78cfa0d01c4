// Package crossing takes messages with blocks from one domain to another, by a link: what stands
// for each block there, and the bytes of those of which the receiver gets a copy. They are written
// from the sender's arena and read into the receiver's, so a message may be of any size.
package crossing
