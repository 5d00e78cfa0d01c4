package testutil

// ForgetDump lets the next hang log the stacks of all goroutines again.
func ForgetDump() { dumped.Store(false) }
