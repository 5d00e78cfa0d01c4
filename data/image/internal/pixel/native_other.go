//go:build !amd64 && !arm64

package pixel

func nativeLoops() *loops { return &portable }
