module github.com/shoal-mp/shoal/libshoal

go 1.27.0

toolchain go1.27.4

require github.com/shoal-mp/shoal v0.0.0

require golang.org/x/sys v0.50.0 // indirect
