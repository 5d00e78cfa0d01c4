// Package asm implements the inner loops of package kernel in assembly, in float32 and float64: for
// amd64 with AVX2 and FMA and with AVX-512, and for arm64 with NEON.
//
// No function checks bounds: the caller must. It must also keep each call short, because the
// scheduler cannot preempt assembly.
//
// The generator is in gen, which is a separate module.
package asm

//go:generate env GOWORK=off go run -C gen . tile -out ../tile_amd64.s -stubs ../tile_amd64.go -pkg asm
//go:generate env GOWORK=off go run -C gen . loop -out ../loop_amd64.s -stubs ../loop_amd64.go -pkg asm
//go:generate env GOWORK=off go run -C gen . exp -out ../exp_amd64.s -stubs ../exp_amd64.go -pkg asm
//go:generate env GOWORK=off go run -C gen . gate -out ../gate_amd64.s -stubs ../gate_amd64.go -pkg asm
//go:generate env GOWORK=off go run -C gen . recurrent -out ../recurrent_amd64.s -stubs ../recurrent_amd64.go -pkg asm
//go:generate env GOWORK=off go run -C gen . norm -out ../norm_amd64.s -stubs ../norm_amd64.go -pkg asm
//go:generate env GOWORK=off go run -C gen . function -out ../function_amd64.s -stubs ../function_amd64.go -pkg asm
//go:generate env GOWORK=off go run -C gen . pixel -out ../pixel_amd64.s -stubs ../pixel_amd64.go -pkg asm
//go:generate env GOWORK=off go run -C gen . cast -out ../cast_amd64.s -stubs ../cast_amd64.go -pkg asm
//go:generate env GOWORK=off go run -C gen . compare -out ../compare_amd64.s -stubs ../compare_amd64.go -pkg asm
//go:generate env GOWORK=off go run -C gen . whole -out ../whole_amd64.s -stubs ../whole_amd64.go -pkg asm
//go:generate env GOWORK=off go run -C gen . fold -out ../fold_amd64.s -stubs ../fold_amd64.go -pkg asm
//go:generate env GOWORK=off go run -C gen . move -out ../move_amd64.s -stubs ../move_amd64.go -pkg asm
//go:generate env GOWORK=off go run -C gen . two -out ../two_amd64.s -stubs ../two_amd64.go -pkg asm
//go:generate env GOWORK=off go run -C gen . table ../table_amd64.go
//go:generate env GOWORK=off go run -C gen . arm64 tile -stubs ../tile_arm64.go -pkg asm
//go:generate env GOWORK=off go run -C gen . arm64 loop -stubs ../loop_arm64.go -pkg asm
//go:generate env GOWORK=off go run -C gen . arm64 exp -stubs ../exp_arm64.go -pkg asm
//go:generate env GOWORK=off go run -C gen . arm64 gate -stubs ../gate_arm64.go -pkg asm
//go:generate env GOWORK=off go run -C gen . arm64 recurrent -stubs ../recurrent_arm64.go -pkg asm
//go:generate env GOWORK=off go run -C gen . arm64 norm -stubs ../norm_arm64.go -pkg asm
//go:generate env GOWORK=off go run -C gen . arm64 pixel -stubs ../pixel_arm64.go -pkg asm
//go:generate env GOWORK=off go run -C gen . arm64 function -stubs ../function_arm64.go -pkg asm
//go:generate env GOWORK=off go run -C gen . arm64 cast -stubs ../cast_arm64.go -pkg asm
//go:generate env GOWORK=off go run -C gen . arm64 compare -stubs ../compare_arm64.go -pkg asm
//go:generate env GOWORK=off go run -C gen . arm64 whole -stubs ../whole_arm64.go -pkg asm
//go:generate env GOWORK=off go run -C gen . arm64 fold -stubs ../fold_arm64.go -pkg asm
//go:generate env GOWORK=off go run -C gen . arm64 move -stubs ../move_arm64.go -pkg asm
//go:generate env GOWORK=off go run -C gen . arm64 two -stubs ../two_arm64.go -pkg asm
//go:generate env GOWORK=off go run -C gen . arm64 brain -stubs ../brain_arm64.go -pkg asm
//go:generate env GOWORK=off go run -C gen . arm64 table ../table_arm64.go

// Tile computes a part of a product that fits into registers: for all its rows i and columns j
//
//	c[i·ldc + j] = alpha · sum over l < k of a[i·rsa + l·csa] · b[off[l] + j]   + c[i·ldc + j] if add
//
// n is the number of columns in its last register. k must be at least 1.
type Tile[F float32 | float64] func(k int, a *F, rsa, csa int, b *F, off *int, c *F, ldc, n int, alpha F, add bool)
