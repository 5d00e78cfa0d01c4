// Package shoaltest tests programs that start processes and share memory.
//
// A test binary whose tests spawn registered functions has one TestMain:
//
//	func TestMain(m *testing.M) { shoaltest.TestMain(m) }
//
// The same binary then serves as the workers. Functions that tests spawn are registered by
// package-level variables in _test.go files.
//
// A test binary that looks for goroutines by another tool, such as goleak, calls shoal.Shutdown
// before that tool looks: docs/howto/testing.md has an example.
//
// The trap: TestMain looks once, after the last test. So where a test ends while its worker still
// runs, or while it keeps a tensor open, all tests pass and the run fails. [NoLeaks] looks after
// one test, and so tells which test it was.
package shoaltest
