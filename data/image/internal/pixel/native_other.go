//go:build !amd64

package pixel

func nativeLoops() *loops { return &portable }
