// Package word provides the words of shared memory: 64-bit integers that several processes change
// at the same time.
//
// A [Word] has the atomic operations. An [Of] is a Word with fields, such as [State], the state of
// a block. Its table of transitions lists the legal changes. Builds with the tag shoalcrash check
// every change against it, and so does a process that runs with SHOAL_DEBUG=verify.
//
// Such builds can also kill the process before and after each change of a word ([ArmCrash]), and
// let a test choose the order in which goroutines access words ([Control]).
package word
