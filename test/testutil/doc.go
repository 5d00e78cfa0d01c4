// Package testutil has the assertions, deadlines and polls that the tests of all packages share.
//
// It imports nothing but the standard library, so that the tests of every package may import it.
// Functions with a [testing.TB] fail the test. [Must] and [MustNoError] panic; they are for code
// without a test, such as a process that a test starts.
//
// A test must not sleep for a fixed time to let something happen. It should wait for the event
// itself, within [Context]. If there is no event to wait for, it should poll with [Eventually]. A
// test of goroutines and timers alone, with no socket, process or shared memory, should run in
// [testing/synctest] instead, where time is fake and no poll is needed.
package testutil
