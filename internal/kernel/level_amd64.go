package kernel

import (
	"golang.org/x/sys/cpu"

	"github.com/shoal-mp/shoal/internal/kernel/asm"
)

var avx2 = level{
	name:       "avx2",
	casts:      castsAVX2,
	compare:    compareAVX2,
	wholes:     wholesAVX2,
	stream:     asm.StreamAVX2,
	gather:     asm.GatherAVX2,
	shorts:     shortsAVX2,
	shortSums:  [shorts]func(n int, x *byte) float64{asm.SumHalfAVX2, asm.SumBrainAVX2},
	shortRelus: [shorts]func(n int, x, y *byte){asm.ReluHalfAVX2, asm.ReluBrainAVX2},
	reverse:    reverseAVX2,
	others:     othersAVX2,
	sumLongs:   asm.SumInt64AVX2, beyond: asm.BeyondInt64AVX2,
	f32: loops[float32]{
		product: asm.ProductAVX2F32, hypot: asm.HypotAVX2F32, atan2: asm.Atan2AVX2F32, power: asm.PowerAVX2F32,
		lanes: 8, tiles: convertTiles(asm.TilesAVX2F32), few: 4, tiny: 32, copyRows: asm.CopyRowsAVX2F32,
		addRows:   asm.AddRowsAVX2F32,
		transpose: asm.TransposeAVX2F32, columns: 8,
		axpy: asm.AxpyAVX2F32, scale: asm.ScaleAVX2F32, shift: asm.ShiftAVX2F32, add: asm.AddAVX2F32,
		sub: asm.SubAVX2F32, mul: asm.MulAVX2F32, div: asm.DivAVX2F32,
		max: asm.MaxAVX2F32, min: asm.MinAVX2F32, largest: asm.LargestAVX2F32, smallest: asm.SmallestAVX2F32,
		clamp: asm.ClampAVX2F32, functions: asm.FunctionsAVX2F32,
		relu: asm.ReluAVX2F32, reluBackward: asm.ReluBackwardAVX2F32, sum: asm.SumAVX2F32,
		sum64: sum64AVX2, rowSums: asm.RowSumsAVX2F32, columnSums: asm.ColumnSumsAVX2F32,
		columnsLargest:  asm.ColumnsLargestAVX2F32,
		columnsSmallest: asm.ColumnsSmallestAVX2F32, dot: asm.DotAVX2F32,
		exp: asm.ExpAVX2F32, sigmoid: asm.SigmoidAVX2F32, tanh: asm.TanhAVX2F32, expSum: asm.ExpSumAVX2F32,
		expTo: asm.ExpToAVX2F32, lessExp: asm.LessExpAVX2F32,
		gelu: asm.GELUAVX2F32, geluSlope: asm.GELUSlopeAVX2F32, gated: asm.GatedAVX2F32,
		gatedSlope: asm.GatedSlopeAVX2F32,
		lstm:       asm.LSTMAVX2F32, lstmBackward: asm.LSTMBackwardAVX2F32, gru: asm.GRUAVX2F32,
		gruBackward: asm.GRUBackwardAVX2F32,
		centre:      asm.CentreAVX2F32, affine: asm.AffineAVX2F32, normSums: asm.NormSumsAVX2F32,
		normSlope: asm.NormSlopeAVX2F32,
		descend:   asm.DescendAVX2F32, adam: asm.AdamAVX2F32, rmsprop: asm.RMSpropAVX2F32,
		pool: asm.PoolAVX2F32, poolBackward: asm.PoolBackwardAVX2F32,
	},
	f64: loops[float64]{
		product: asm.ProductAVX2F64,
		lanes:   4, tiles: convertTiles(asm.TilesAVX2F64), few: 4, tiny: 32, copyRows: asm.CopyRowsAVX2F64,
		addRows:   asm.AddRowsAVX2F64,
		transpose: asm.TransposeAVX2F64, columns: 4,
		axpy: asm.AxpyAVX2F64, scale: asm.ScaleAVX2F64, shift: asm.ShiftAVX2F64, add: asm.AddAVX2F64,
		sub: asm.SubAVX2F64, mul: asm.MulAVX2F64, div: asm.DivAVX2F64,
		max: asm.MaxAVX2F64, min: asm.MinAVX2F64, largest: asm.LargestAVX2F64, smallest: asm.SmallestAVX2F64,
		clamp: asm.ClampAVX2F64, functions: orPortable(asm.FunctionsAVX2F64),
		polar: asm.PolarAVX2F64,
		relu:  asm.ReluAVX2F64, reluBackward: asm.ReluBackwardAVX2F64, sum: asm.SumAVX2F64,
		sum64: asm.SumAVX2F64, columnSums: columnSumsF64, columnsLargest: asm.ColumnsLargestAVX2F64,
		columnsSmallest: asm.ColumnsSmallestAVX2F64, dot: asm.DotAVX2F64,
		exp: asm.ExpAVX2F64, sigmoid: asm.SigmoidAVX2F64, tanh: asm.TanhAVX2F64, expSum: asm.ExpSumAVX2F64,
		expTo: asm.ExpToAVX2F64, lessExp: asm.LessExpAVX2F64,
		gelu: gelu[float64], geluSlope: geluSlope[float64], gated: asm.GatedAVX2F64, gatedSlope: asm.GatedSlopeAVX2F64,
		lstm: lstm[float64], lstmBackward: lstmBackward[float64], gru: gru[float64], gruBackward: gruBackward[float64],
		centre: asm.CentreAVX2F64, affine: asm.AffineAVX2F64, normSums: asm.NormSumsAVX2F64,
		normSlope: asm.NormSlopeAVX2F64,
		descend:   asm.DescendAVX2F64, adam: asm.AdamAVX2F64, rmsprop: asm.RMSpropAVX2F64,
		pool: poolPairs[float64], poolBackward: unpoolPairs[float64], // only gradient tests use float64 pooling
	},
}

// avx512 still uses AVX2 to copy and add rows of images. The rows are short, and a masked store
// blocks store forwarding to the load of the next row, so AVX2 is faster.
var avx512 = level{
	name:       "avx512",
	casts:      castsAVX512,
	compare:    compareAVX2,
	wholes:     wholesAVX2,
	stream:     asm.StreamAVX2,
	gather:     asm.GatherAVX512,
	congruence: asm.CongruenceAVX512,
	fractions:  asm.FractionsAVX512,
	points:     asm.PointsAVX512,
	pairs:      asm.PairsAVX512,
	shorts:     shortsAVX512,
	brain:      &brainLoops{asm.ProductBrainAMX, asm.PairBrainAVX512},
	shortSums:  [shorts]func(n int, x *byte) float64{asm.SumHalfAVX512, asm.SumBrainAVX512},
	shortRelus: [shorts]func(n int, x, y *byte){asm.ReluHalfAVX2, asm.ReluBrainAVX2},
	reverse:    reverseAVX2,
	others:     othersAVX2,
	sumLongs:   asm.SumInt64AVX512, beyond: asm.BeyondInt64AVX512,
	largestLong: asm.LargestInt64AVX512, smallestLong: asm.SmallestInt64AVX512,
	f32: loops[float32]{
		product: asm.ProductAVX512F32, hypot: asm.HypotAVX512F32, atan2: asm.Atan2AVX512F32, power: asm.PowerAVX512F32,
		lanes: 16, tiles: convertTiles(asm.TilesAVX512F32), few: 4, tiny: 32, copyRows: asm.CopyRowsAVX2F32,
		addRows:   asm.AddRowsAVX2F32,
		transpose: asm.TransposeAVX2F32, columns: 8, transposeSixteen: asm.TransposeSixteenAVX512F32,
		axpy: asm.AxpyAVX512F32, scale: asm.ScaleAVX512F32, shift: asm.ShiftAVX512F32, add: asm.AddAVX512F32,
		sub: asm.SubAVX512F32, mul: asm.MulAVX512F32, div: asm.DivAVX512F32,
		max: asm.MaxAVX512F32, min: asm.MinAVX512F32, largest: asm.LargestAVX512F32,
		smallest: asm.SmallestAVX512F32, clamp: asm.ClampAVX512F32, functions: asm.FunctionsAVX512F32,
		relu: asm.ReluAVX512F32, reluBackward: asm.ReluBackwardAVX512F32, sum: asm.SumAVX512F32,
		sum64: sum64AVX512, rowSums: asm.RowSumsAVX512F32, columnSums: asm.ColumnSumsAVX512F32,
		columnsLargest:  asm.ColumnsLargestAVX512F32,
		columnsSmallest: asm.ColumnsSmallestAVX512F32, dot: asm.DotAVX512F32,
		exp: asm.ExpAVX512F32, sigmoid: asm.SigmoidAVX512F32, tanh: asm.TanhAVX512F32,
		expSum: asm.ExpSumAVX512F32, expTo: asm.ExpToAVX512F32, lessExp: asm.LessExpAVX512F32,
		gelu: asm.GELUAVX512F32, geluSlope: asm.GELUSlopeAVX512F32, gated: asm.GatedAVX512F32,
		gatedSlope: asm.GatedSlopeAVX512F32,
		lstm:       asm.LSTMAVX512F32, lstmBackward: asm.LSTMBackwardAVX512F32, gru: asm.GRUAVX512F32,
		gruBackward: asm.GRUBackwardAVX512F32,
		centre:      asm.CentreAVX512F32, affine: asm.AffineAVX512F32, normSums: asm.NormSumsAVX512F32,
		normSlope: asm.NormSlopeAVX512F32,
		descend:   asm.DescendAVX512F32, adam: asm.AdamAVX512F32, rmsprop: asm.RMSpropAVX512F32,
		pool: asm.PoolAVX512F32, poolBackward: asm.PoolBackwardAVX512F32,
	},
	f64: loops[float64]{
		product: asm.ProductAVX512F64,
		lanes:   8, tiles: convertTiles(asm.TilesAVX512F64), few: 4, tiny: 32, copyRows: asm.CopyRowsAVX2F64,
		addRows:   asm.AddRowsAVX2F64,
		transpose: asm.TransposeAVX2F64, columns: 4,
		axpy: asm.AxpyAVX512F64, scale: asm.ScaleAVX512F64, shift: asm.ShiftAVX512F64, add: asm.AddAVX512F64,
		sub: asm.SubAVX512F64, mul: asm.MulAVX512F64, div: asm.DivAVX512F64,
		max: asm.MaxAVX512F64, min: asm.MinAVX512F64, largest: asm.LargestAVX512F64,
		smallest: asm.SmallestAVX512F64, clamp: asm.ClampAVX512F64, functions: orPortable(asm.FunctionsAVX512F64),
		polar: asm.PolarAVX512F64,
		relu:  asm.ReluAVX512F64, reluBackward: asm.ReluBackwardAVX512F64, sum: asm.SumAVX512F64,
		sum64: asm.SumAVX512F64, columnSums: columnSumsF64, columnsLargest: asm.ColumnsLargestAVX512F64,
		columnsSmallest: asm.ColumnsSmallestAVX512F64, dot: asm.DotAVX512F64,
		exp: asm.ExpAVX512F64, sigmoid: asm.SigmoidAVX512F64, tanh: asm.TanhAVX512F64,
		expSum: asm.ExpSumAVX512F64, expTo: asm.ExpToAVX512F64, lessExp: asm.LessExpAVX512F64,
		gelu: gelu[float64], geluSlope: geluSlope[float64], gated: asm.GatedAVX512F64,
		gatedSlope: asm.GatedSlopeAVX512F64,
		lstm:       lstm[float64], lstmBackward: lstmBackward[float64], gru: gru[float64],
		gruBackward: gruBackward[float64],
		centre:      asm.CentreAVX512F64, affine: asm.AffineAVX512F64, normSums: asm.NormSumsAVX512F64,
		normSlope: asm.NormSlopeAVX512F64,
		descend:   asm.DescendAVX512F64, adam: asm.AdamAVX512F64, rmsprop: asm.RMSpropAVX512F64,
		pool: poolPairs[float64], poolBackward: unpoolPairs[float64], // only gradient tests use float64 pooling
	},
}

// castsAVX2 are in the order of the constants. They are limited by memory, so wider registers would
// not help.
var castsAVX2 = [casts]func(n int, x, y *byte){
	asm.HalfToFloat32AVX2, asm.Float32ToHalfAVX2, asm.BrainToFloat32AVX2, asm.Float32ToBrainAVX2,
	asm.Uint8ToFloat32AVX2, asm.Int32ToFloat32AVX2, asm.Float32ToFloat64AVX2, asm.Float64ToFloat32AVX2, nil, nil,
}

// castsAVX512 adds the casts for which AVX2 has no instructions.
var castsAVX512 = func() [casts]func(n int, x, y *byte) {
	all := castsAVX2
	all[Float32ToInt64], all[Int64ToFloat32] = asm.Float32ToInt64AVX512, asm.Int64ToFloat32AVX512
	return all
}()

// compareAVX2 are in the order of the constants and of kind.
var compareAVX2 = [comparisons][elements]func(n int, x, y, z *byte){
	{asm.EqualUint8AVX2, asm.EqualInt8AVX2, asm.EqualInt16AVX2, asm.EqualInt32AVX2,
		asm.EqualInt64AVX2, asm.EqualFloat32AVX2, asm.EqualFloat64AVX2},
	{asm.NotEqualUint8AVX2, asm.NotEqualInt8AVX2, asm.NotEqualInt16AVX2, asm.NotEqualInt32AVX2,
		asm.NotEqualInt64AVX2, asm.NotEqualFloat32AVX2, asm.NotEqualFloat64AVX2},
	{asm.LessUint8AVX2, asm.LessInt8AVX2, asm.LessInt16AVX2, asm.LessInt32AVX2,
		asm.LessInt64AVX2, asm.LessFloat32AVX2, asm.LessFloat64AVX2},
	{asm.LessOrEqualUint8AVX2, asm.LessOrEqualInt8AVX2, asm.LessOrEqualInt16AVX2, asm.LessOrEqualInt32AVX2,
		asm.LessOrEqualInt64AVX2, asm.LessOrEqualFloat32AVX2, asm.LessOrEqualFloat64AVX2},
}

// wholesAVX2 are in the order of the constants and of kind.
var wholesAVX2 = [wholes][integers]func(n int, x, y, z *byte){
	{asm.AddInt8AVX2, asm.AddInt8AVX2, asm.AddInt16AVX2, asm.AddInt32AVX2, asm.AddInt64AVX2},
	{asm.SubInt8AVX2, asm.SubInt8AVX2, asm.SubInt16AVX2, asm.SubInt32AVX2, asm.SubInt64AVX2},
	{asm.MulInt8AVX2, asm.MulInt8AVX2, asm.MulInt16AVX2, asm.MulInt32AVX2, nil},
	{asm.MaxUint8AVX2, asm.MaxInt8AVX2, asm.MaxInt16AVX2, asm.MaxInt32AVX2, asm.MaxInt64AVX2},
	{asm.MinUint8AVX2, asm.MinInt8AVX2, asm.MinInt16AVX2, asm.MinInt32AVX2, asm.MinInt64AVX2},
}

// shortsAVX2 and shortsAVX512 are in the order of the constants.
var shortsAVX2 = [arithmetics][shorts]func(n int, x, y, z *byte){
	{asm.AddHalfAVX2, asm.AddBrainAVX2}, {asm.SubHalfAVX2, asm.SubBrainAVX2},
	{asm.MulHalfAVX2, asm.MulBrainAVX2}, {asm.DivHalfAVX2, asm.DivBrainAVX2},
}

var shortsAVX512 = [arithmetics][shorts]func(n int, x, y, z *byte){
	{asm.AddHalfAVX512, asm.AddBrainAVX512}, {asm.SubHalfAVX512, asm.SubBrainAVX512},
	{asm.MulHalfAVX512, asm.MulBrainAVX512}, {asm.DivHalfAVX512, asm.DivBrainAVX512},
}

var (
	reverseAVX2 = [4]func(n int, x, y *byte){
		asm.ReverseBytesAVX2, asm.ReversePairsAVX2, asm.ReverseWordsAVX2, asm.ReverseLongsAVX2}
	othersAVX2 = [4]func(n int, x, y *byte){asm.OtherBytesAVX2, asm.OtherPairsAVX2, asm.OtherWordsAVX2,
		asm.OtherLongsAVX2}
)

// sum64AVX2 and sum64AVX512 return the sum of one row. They call the assembly by name instead of by
// a function value, so that sum does not escape to the heap.
func sum64AVX2(n int, x *float32) (sum float64) {
	asm.RowSumsAVX2F32(1, n, x, &sum)
	return sum
}

func sum64AVX512(n int, x *float32) (sum float64) {
	asm.RowSumsAVX512F32(1, n, x, &sum)
	return sum
}

// columnSumsF64 is the loop columnSums: it adds each of the rows to y, as addRows with a
// distance of 0 between destination rows.
func columnSumsF64(rows, n int, x *float64, ld int, y *float64) {
	asm.AddRowsAVX2F64(rows, n, x, ld, y, 0)
}

// nativeLevels returns the levels that this processor supports, the fastest first. Package cpu
// also checks that the operating system saves the registers.
func nativeLevels() (found []*level) {
	if !cpu.X86.HasAVX2 || !cpu.X86.HasFMA || !cpu.X86.HasBMI2 {
		return nil
	}
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL {
		found = append(found, &avx512)
	}
	return append(found, &avx2)
}
