//go:build !amd64

package pixel

func native() *loops { return &portable }
