//go:build !(linux && amd64)

package kernel

func matrixUnit() bool { return false }
