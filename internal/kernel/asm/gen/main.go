// Gen generates the assembly of the kernels. To run it, use go generate in the parent directory.
//
// Most functions exist four times: for AVX2 with FMA and for AVX-512, each in float32 and float64.
// A vector describes the differences.
package main

import (
	"fmt"
	"os"

	. "github.com/mmcloughlin/avo/build"
)

// writers maps the name of each generated file to the function that writes it.
var writers = map[string]func(vectors []vector){
	"tile": writeTiles,
	"loop": writeLoops, "exp": writeExps, "gate": writeGates, "recurrent": writeRecurrents,
	"norm": writeNorms, "pixel": writePixels, "function": writeFunctions, "cast": writeCasts,
	"compare": writeComparisons, "whole": writeWholes, "fold": writeFolds, "move": writeMoves, "two": writeTwos,
	"brain": writeBrains, // only arm64
}

func main() {
	vectors := []vector{avx2(4), avx2(8), avx512(4), avx512(8)}
	forARM64 := os.Args[1] == "arm64"
	if forARM64 {
		vectors = []vector{neonVector(4), neonVector(8)}
		os.Args = append(os.Args[:1], os.Args[2:]...)
	}
	if os.Args[1] == "table" {
		if err := writeGoTables(os.Args[2], vectors); err != nil {
			panic(err)
		}
		return
	}
	// avo parses the flags -out, -stubs and -pkg. The name of the file must come before them.
	name := os.Args[1]
	write := writers[name]
	if write == nil {
		panic(fmt.Sprintf("no file %q", name))
	}
	os.Args = append(os.Args[:1], os.Args[2:]...)
	if forARM64 {
		ConstraintExpr("arm64")
		writeARM64(name)
	} else {
		ConstraintExpr("amd64")
	}
	write(vectors)
	Generate()
}
