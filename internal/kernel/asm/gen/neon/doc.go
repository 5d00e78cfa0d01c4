// Package neon translates functions that are built with avo, for AVX2, to arm64 with NEON.
//
// avo has no back end for arm64. [Translate] takes its functions before their registers are
// allocated. A 256-bit register becomes two 128-bit registers, and each instruction becomes the
// instructions that do the same with both. The registers that they need for intermediate results
// do not exist on amd64, so the allocation of registers is part of this package. [Raw] adds
// operations that have no instruction on amd64.
//
// Go's assembler does not know most vector instructions of arm64
// (https://github.com/golang/go/issues/40725). They are written as words, with the instruction in
// a comment in the syntax of the Arm Architecture Reference Manual; scripts/arm64-words compares
// both with llvm-mc.
package neon
