//go:build !amd64

package kernel

func native() []*level { return nil }
