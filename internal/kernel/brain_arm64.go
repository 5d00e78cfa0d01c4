package kernel

// matrixUnit reports whether the products of BFloat16 of the level may be used. The level with them
// exists only if the processor has the instructions.
func matrixUnit() bool { return true }
