package kernel

import (
	"github.com/shoal-mp/shoal/internal/kernel/asm"
	"github.com/shoal-mp/shoal/internal/sys"
)

var neon = level{
	name:        "neon",
	casts:       castsNEON,
	compare:     compareNEON,
	wholes:      wholesNEON,
	stream:      asm.StreamNEON,
	gather:      asm.GatherNEON,
	shorts:      shortsNEON,
	shortSums:   [shorts]func(n int, x *byte) float64{asm.SumHalfNEON, asm.SumBrainNEON},
	shortRelus:  [shorts]func(n int, x, y *byte){asm.ReluHalfNEON, asm.ReluBrainNEON},
	reverse:     reverseNEON,
	others:      othersNEON,
	fractions:   asm.FractionsNEON,
	points:      asm.PointsNEON,
	pairs:       asm.PairsNEON,
	largestLong: asm.LargestInt64NEON, smallestLong: asm.SmallestInt64NEON,
	sumLongs: asm.SumInt64NEON, beyond: asm.BeyondInt64NEON,
	f32: loops[float32]{
		product: asm.ProductNEONF32, hypot: asm.HypotNEONF32, atan2: asm.Atan2NEONF32, power: asm.PowerNEONF32,
		lanes: 8, tiles: convertTiles(asm.TilesNEONF32), few: 4, tiny: 32, copyRows: asm.CopyRowsNEONF32,
		addRows:   asm.AddRowsNEONF32,
		transpose: asm.TransposeNEONF32, columns: 8,
		axpy: asm.AxpyNEONF32, scale: asm.ScaleNEONF32, shift: asm.ShiftNEONF32, add: asm.AddNEONF32,
		sub: asm.SubNEONF32, mul: asm.MulNEONF32, div: asm.DivNEONF32,
		max: asm.MaxNEONF32, min: asm.MinNEONF32, largest: asm.LargestNEONF32, smallest: asm.SmallestNEONF32,
		clamp: asm.ClampNEONF32, functions: asm.FunctionsNEONF32,
		relu: asm.ReluNEONF32, reluBackward: asm.ReluBackwardNEONF32, sum: asm.SumNEONF32,
		sum64: sum64NEON, rowSums: asm.RowSumsNEONF32, columnSums: asm.ColumnSumsNEONF32,
		columnsLargest:  asm.ColumnsLargestNEONF32,
		columnsSmallest: asm.ColumnsSmallestNEONF32, dot: asm.DotNEONF32,
		exp: asm.ExpNEONF32, sigmoid: asm.SigmoidNEONF32, tanh: asm.TanhNEONF32, expSum: asm.ExpSumNEONF32,
		expTo: asm.ExpToNEONF32, lessExp: asm.LessExpNEONF32,
		gelu: asm.GELUNEONF32, geluSlope: asm.GELUSlopeNEONF32, gated: asm.GatedNEONF32,
		gatedSlope: asm.GatedSlopeNEONF32,
		lstm:       asm.LSTMNEONF32, lstmBackward: asm.LSTMBackwardNEONF32, gru: asm.GRUNEONF32,
		gruBackward: asm.GRUBackwardNEONF32,
		centre:      asm.CentreNEONF32, affine: asm.AffineNEONF32, normSums: asm.NormSumsNEONF32,
		normSlope: asm.NormSlopeNEONF32,
		descend:   asm.DescendNEONF32, adam: asm.AdamNEONF32, rmsprop: asm.RMSpropNEONF32,
		pool: asm.PoolNEONF32, poolBackward: asm.PoolBackwardNEONF32,
	},
	f64: loops[float64]{
		product: asm.ProductNEONF64,
		lanes:   4, tiles: convertTiles(asm.TilesNEONF64), few: 4, tiny: 32, copyRows: asm.CopyRowsNEONF64,
		addRows:   asm.AddRowsNEONF64,
		transpose: asm.TransposeNEONF64, columns: 4,
		axpy: asm.AxpyNEONF64, scale: asm.ScaleNEONF64, shift: asm.ShiftNEONF64, add: asm.AddNEONF64,
		sub: asm.SubNEONF64, mul: asm.MulNEONF64, div: asm.DivNEONF64,
		max: asm.MaxNEONF64, min: asm.MinNEONF64, largest: asm.LargestNEONF64, smallest: asm.SmallestNEONF64,
		clamp: asm.ClampNEONF64, functions: orPortable(asm.FunctionsNEONF64),
		polar: asm.PolarNEONF64,
		relu:  asm.ReluNEONF64, reluBackward: asm.ReluBackwardNEONF64, sum: asm.SumNEONF64,
		sum64: asm.SumNEONF64, columnSums: columnSumsF64, columnsLargest: asm.ColumnsLargestNEONF64,
		columnsSmallest: asm.ColumnsSmallestNEONF64, dot: asm.DotNEONF64,
		exp: asm.ExpNEONF64, sigmoid: asm.SigmoidNEONF64, tanh: asm.TanhNEONF64, expSum: asm.ExpSumNEONF64,
		expTo: asm.ExpToNEONF64, lessExp: asm.LessExpNEONF64,
		gelu: gelu[float64], geluSlope: geluSlope[float64], gated: asm.GatedNEONF64, gatedSlope: asm.GatedSlopeNEONF64,
		lstm: lstm[float64], lstmBackward: lstmBackward[float64], gru: gru[float64], gruBackward: gruBackward[float64],
		centre: asm.CentreNEONF64, affine: asm.AffineNEONF64, normSums: asm.NormSumsNEONF64,
		normSlope: asm.NormSlopeNEONF64,
		descend:   asm.DescendNEONF64, adam: asm.AdamNEONF64, rmsprop: asm.RMSpropNEONF64,
		pool: poolPairs[float64], poolBackward: unpoolPairs[float64], // only gradient tests use float64 pooling
	},
}

// castsNEON are in the order of the constants.
var castsNEON = [casts]func(n int, x, y *byte){
	asm.HalfToFloat32NEON, asm.Float32ToHalfNEON, asm.BrainToFloat32NEON, asm.Float32ToBrainNEON,
	asm.Uint8ToFloat32NEON, asm.Int32ToFloat32NEON, asm.Float32ToFloat64NEON, asm.Float64ToFloat32NEON,
	asm.Float32ToInt64NEON, asm.Int64ToFloat32NEON,
}

// compareNEON are in the order of the constants and of kind.
var compareNEON = [comparisons][elements]func(n int, x, y, z *byte){
	{asm.EqualUint8NEON, asm.EqualInt8NEON, asm.EqualInt16NEON, asm.EqualInt32NEON,
		asm.EqualInt64NEON, asm.EqualFloat32NEON, asm.EqualFloat64NEON},
	{asm.NotEqualUint8NEON, asm.NotEqualInt8NEON, asm.NotEqualInt16NEON, asm.NotEqualInt32NEON,
		asm.NotEqualInt64NEON, asm.NotEqualFloat32NEON, asm.NotEqualFloat64NEON},
	{asm.LessUint8NEON, asm.LessInt8NEON, asm.LessInt16NEON, asm.LessInt32NEON,
		asm.LessInt64NEON, asm.LessFloat32NEON, asm.LessFloat64NEON},
	{asm.LessOrEqualUint8NEON, asm.LessOrEqualInt8NEON, asm.LessOrEqualInt16NEON, asm.LessOrEqualInt32NEON,
		asm.LessOrEqualInt64NEON, asm.LessOrEqualFloat32NEON, asm.LessOrEqualFloat64NEON},
}

// wholesNEON are in the order of the constants and of kind.
var wholesNEON = [wholes][integers]func(n int, x, y, z *byte){
	{asm.AddInt8NEON, asm.AddInt8NEON, asm.AddInt16NEON, asm.AddInt32NEON, asm.AddInt64NEON},
	{asm.SubInt8NEON, asm.SubInt8NEON, asm.SubInt16NEON, asm.SubInt32NEON, asm.SubInt64NEON},
	{asm.MulInt8NEON, asm.MulInt8NEON, asm.MulInt16NEON, asm.MulInt32NEON, nil},
	{asm.MaxUint8NEON, asm.MaxInt8NEON, asm.MaxInt16NEON, asm.MaxInt32NEON, asm.MaxInt64NEON},
	{asm.MinUint8NEON, asm.MinInt8NEON, asm.MinInt16NEON, asm.MinInt32NEON, asm.MinInt64NEON},
}

// shortsNEON are in the order of the constants.
var shortsNEON = [arithmetics][shorts]func(n int, x, y, z *byte){
	{asm.AddHalfNEON, asm.AddBrainNEON}, {asm.SubHalfNEON, asm.SubBrainNEON},
	{asm.MulHalfNEON, asm.MulBrainNEON}, {asm.DivHalfNEON, asm.DivBrainNEON},
}

var (
	reverseNEON = [4]func(n int, x, y *byte){
		asm.ReverseBytesNEON, asm.ReversePairsNEON, asm.ReverseWordsNEON, asm.ReverseLongsNEON}
	othersNEON = [4]func(n int, x, y *byte){asm.OtherBytesNEON, asm.OtherPairsNEON, asm.OtherWordsNEON,
		asm.OtherLongsNEON}
)

// sum64NEON returns the sum of one row. It calls the assembly by name instead of by a function
// value, so that sum does not escape to the heap.
func sum64NEON(n int, x *float32) (sum float64) {
	asm.RowSumsNEONF32(1, n, x, &sum)
	return sum
}

// columnSumsF64 is the loop columnSums: it adds each of the rows to y, as addRows with a
// distance of 0 between destination rows.
func columnSumsF64(rows, n int, x *float64, ld int, y *float64) {
	asm.AddRowsNEONF64(rows, n, x, ld, y, 0)
}

// neonBrain adds the instructions for BFloat16 of the extension BF16: Neoverse N2, V1 and V2 have
// it, N1 does not.
var neonBrain = func() level {
	l := neon
	l.name = "neon-bf16"
	l.casts[Float32ToBrain] = asm.Float32ToBrainBF16
	l.shorts = [arithmetics][shorts]func(n int, x, y, z *byte){
		{asm.AddHalfNEON, asm.AddBrainBF16}, {asm.SubHalfNEON, asm.SubBrainBF16},
		{asm.MulHalfNEON, asm.MulBrainBF16}, {asm.DivHalfNEON, asm.DivBrainBF16},
	}
	l.brain = &brainLoops{asm.ProductBrainBF16, asm.PairBrainNEON}
	return l
}()

// nativeLevels returns the levels that this processor supports, the fastest first. Every arm64
// processor that Go supports has NEON.
func nativeLevels() []*level {
	if sys.HasBrainFloat() {
		return []*level{&neonBrain, &neon}
	}
	return []*level{&neon}
}
