package autograd

// SetWorkspace sets how many bytes a convolution on a device may take, and returns how many it might before.
func SetWorkspace(n int) (before int) {
	before, workspace = workspace, n
	return before
}
