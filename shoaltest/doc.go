// Package shoaltest supports tests of programs that start processes and share memory.
//
//	func TestMain(m *testing.M) { shoaltest.TestMain(m) }
//
//	func TestFill(t *testing.T) {
//		shoaltest.NoLeaks(t)
//		x, err := tensor.NewShared(tensor.Float32, 3)
//		if err != nil {
//			t.Fatal(err)
//		}
//		defer x.Close()
//		if x.Fill(2); x.Sum() != 6 {
//			t.Error(x)
//		}
//	}
//
// Start with [TestMain] and [NoLeaks].
//
// A test binary that starts registered functions in its tests must have a TestMain.
//
// The same binary then runs the workers. Functions started by tests should be registered by
// package-level variables in _test.go files.
//
// A test binary that checks for leaked goroutines with another tool, such as goleak, must call
// shoal.Shutdown before that check: see the example in docs/howto/testing.md.
//
// The trap: TestMain checks only once, after the last test. If a test ends while its worker is
// running or a tensor is open, all tests pass but the run fails. [NoLeaks] checks after one test,
// and so identifies the test.
package shoaltest
