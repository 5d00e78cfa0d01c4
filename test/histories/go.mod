module github.com/shoal-mp/shoal/test/histories

go 1.27.0

toolchain go1.27.4

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/shoal-mp/shoal v0.0.0
)

require golang.org/x/sys v0.50.0 // indirect
