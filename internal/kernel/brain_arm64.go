package kernel

// matrixUnit returns true: on arm64 the products of BFloat16 need no permission. The level with
// these products exists only if the processor has the instructions.
func matrixUnit() bool { return true }
