module github.com/shoal-mp/shoal

go 1.27.0

toolchain go1.27.4

require (
	github.com/ebitengine/purego v0.11.3
	github.com/klauspost/compress v1.20.4
	github.com/shamaton/msgpack/v3 v3.1.0
	github.com/tinylib/msgp v1.6.5
	golang.org/x/image v0.48.0
	golang.org/x/sys v0.50.0
	gonum.org/v1/gonum v0.17.0
	pgregory.net/rapid v1.3.0
)

require github.com/philhofer/fwd v1.2.0 // indirect
