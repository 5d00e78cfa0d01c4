// Gen writes the assembly of the kernels: run go generate in the directory above.
//
// Each function exists four times: for AVX2 with FMA and for AVX-512, in float32 and float64. A
// vector says what differs.
package main

import (
	"fmt"
	"os"

	. "github.com/mmcloughlin/avo/build"
)

// writers are the files.
var writers = map[string]func(vectors []vector){
	"tile": writeTiles,
	"loop": writeLoops, "exp": writeExps, "gate": writeGates, "recurrent": writeRecurrents,
	"norm": writeNorms, "pixel": writePixels, "function": writeFunctions, "cast": writeCasts,
	"compare": writeComparisons, "whole": writeWholes, "fold": writeFolds, "move": writeMoves, "two": writeTwos,
}

func main() {
	vectors := []vector{avx2(4), avx2(8), avx512(4), avx512(8)}
	if os.Args[1] == "table" {
		if err := writeTable(os.Args[2], vectors); err != nil {
			panic(err)
		}
		return
	}
	// avo looks at the flags -out, -stubs and -pkg; which file it is comes before them.
	write := writers[os.Args[1]]
	if write == nil {
		panic(fmt.Sprintf("no file %q", os.Args[1]))
	}
	os.Args = append(os.Args[:1], os.Args[2:]...)
	ConstraintExpr("amd64")
	write(vectors)
	Generate()
}
