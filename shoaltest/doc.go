// Package shoaltest tests programs that start processes and share memory.
//
// A test binary whose tests spawn registered functions has one TestMain:
//
//	func TestMain(m *testing.M) { shoaltest.TestMain(m) }
//
// The same binary then serves as the workers. Functions that tests spawn are registered by
// package-level variables in _test.go files.
//
// The trap: a test that ends while a worker still runs, or while a tensor is neither closed nor
// garbage, fails the whole run, after all tests have passed. [NoLeaks] tells which test it was.
package shoaltest
