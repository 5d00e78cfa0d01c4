// Package devicetest provides a device without hardware. Its memory is on the heap, and it computes
// with the host loops of package tensor. It is the reference for other devices, and tests of device
// tensors can use it on any machine. Its memory cannot be sent to other processes, except for a
// [Shared] device. [Conform] checks that a device behaves like the host.
package devicetest
