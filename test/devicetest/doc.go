// Package devicetest has a device without hardware, whose memory is the heap and which computes
// with package tensor's loops on the host: what other devices are compared with, and what tests of
// tensors on a device run on everywhere. Its memory stays in its process, unless it is a Shared
// one.
package devicetest
