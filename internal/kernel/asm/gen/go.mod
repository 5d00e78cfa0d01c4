// The generator of the assembly is a module of its own, so that avo stays out of everybody's build.
module github.com/shoal-mp/shoal/internal/kernel/asm/gen

go 1.26

require github.com/mmcloughlin/avo v0.6.0

require (
	golang.org/x/mod v0.24.0 // indirect
	golang.org/x/sync v0.13.0 // indirect
	golang.org/x/tools v0.32.0 // indirect
)
