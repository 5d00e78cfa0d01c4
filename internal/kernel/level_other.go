//go:build !amd64

package kernel

func nativeLevels() []*level { return nil }
