package main

import (
	"fmt"
	"math"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vector describes a kind of register filled with numbers of one size, and its instructions.
// Its methods emit code into the function in progress, through package avo, in which only one
// function is in progress at a time. avx2, avx512 and neonVector make it.
type vector struct {
	suffix string // suffix of function names
	goType string
	size   int // size of a number in bytes
	lanes  int
	wide   bool // AVX-512
	neon   bool // pairs of registers of arm64
	twice  bool // two pairs for each iteration of flat
	rows   int  // of the tallest tile: as many accumulators as there are registers
	few    int  // of the tallest tile of double width

	fresh                                                       func() reg.VecVirtual
	move, broadcast, fma231, fma213, less231, add, mul, largest instruction
	sub, div, sqrt, least                                       instruction
	and, andNot, or, xor                                        instruction // bitwise
	shift, shiftRight, plus                                     instruction // on integers of the size of a number
	zero                                                        func(v reg.VecVirtual)
}

func avx2(size int) vector {
	v := vector{suffix: "AVX2", size: size, lanes: 32 / size, rows: 6, few: 2}
	v.fresh = func() reg.VecVirtual { return YMM() }
	v.zero = func(x reg.VecVirtual) { VXORPS(x, x, x) }
	return v.of(size)
}

func avx512(size int) vector {
	v := vector{suffix: "AVX512", size: size, lanes: 64 / size, rows: 14, few: 4, wide: true}
	v.fresh = func() reg.VecVirtual { return ZMM() }
	v.zero = func(x reg.VecVirtual) { VPXORD(x, x, x) }
	return v.of(size)
}

func (v vector) of(size int) vector {
	v.suffix += fmt.Sprint("F", 8*size)
	v.goType = fmt.Sprint("float", 8*size)
	if size == 4 {
		v.move, v.broadcast, v.add, v.mul, v.largest = VMOVUPS, VBROADCASTSS, VADDPS, VMULPS, VMAXPS
		v.fma231, v.fma213, v.less231 = VFMADD231PS, VFMADD213PS, VFNMADD231PS
		v.sub, v.div, v.sqrt, v.least = VSUBPS, VDIVPS, VSQRTPS, VMINPS
		v.and, v.andNot, v.or, v.xor = VANDPS, VANDNPS, VORPS, VXORPS
		v.shift, v.shiftRight, v.plus = VPSLLD, VPSRLD, VPADDD
	} else {
		v.move, v.broadcast, v.add, v.mul, v.largest = VMOVUPD, VBROADCASTSD, VADDPD, VMULPD, VMAXPD
		v.fma231, v.fma213, v.less231 = VFMADD231PD, VFMADD213PD, VFNMADD231PD
		v.sub, v.div, v.sqrt, v.least = VSUBPD, VDIVPD, VSQRTPD, VMINPD
		v.and, v.andNot, v.or, v.xor = VANDPD, VANDNPD, VORPD, VXORPD
		v.shift, v.shiftRight, v.plus = VPSLLQ, VPSRLQ, VPADDQ
	}
	if v.wide {
		v.broadcastConstants()
	}
	return v
}

// instruction emits an instruction with operands in the order of Go's assembler.
type instruction = func(ops ...Op)

// broadcastConstants makes instructions broadcast constants that are stored as a single number. A
// constant of full register size in memory would cross a cache line half of the time.
func (v *vector) broadcastConstants() {
	type forms struct {
		of             *instruction
		single, double instruction
	}
	for _, f := range []forms{
		{&v.add, VADDPS_BCST, VADDPD_BCST}, {&v.sub, VSUBPS_BCST, VSUBPD_BCST}, {&v.mul, VMULPS_BCST, VMULPD_BCST},
		{&v.largest, VMAXPS_BCST, VMAXPD_BCST}, {&v.least, VMINPS_BCST, VMINPD_BCST},
		{&v.fma231, VFMADD231PS_BCST, VFMADD231PD_BCST}, {&v.fma213, VFMADD213PS_BCST, VFMADD213PD_BCST},
		{&v.less231, VFNMADD231PS_BCST, VFNMADD231PD_BCST},
		{&v.and, VANDPS_BCST, VANDPD_BCST}, {&v.or, VORPS_BCST, VORPD_BCST}, {&v.xor, VXORPS_BCST, VXORPD_BCST},
		{&v.plus, VPADDD_BCST, VPADDQ_BCST},
		{&v.move, v.broadcast, v.broadcast},
	} {
		whole, each := *f.of, f.double
		if v.single() {
			each = f.single
		}
		*f.of = func(ops ...Op) {
			if m, ok := ops[0].(Mem); ok && strings.HasPrefix(m.Symbol.Name, once) {
				each(ops...)
			} else {
				whole(ops...)
			}
		}
	}
}

// once is the prefix of the names of constants that are stored as a single number.
const once = "one"

// bytes returns the size of a register.
func (v vector) bytes() int { return v.size * v.lanes }

// single reports whether the numbers are float32.
func (v vector) single() bool { return v.size == 4 }

// text begins the function name with the suffix of v. params are in Go syntax, with F for the
// type of the numbers.
func (v vector) text(name, params string) {
	signature := ""
	for _, r := range params {
		if r == 'F' {
			signature += v.goType
		} else {
			signature += string(r)
		}
	}
	TEXT(name+v.suffix, NOSPLIT, "func("+signature+")")
	Pragma("noescape")
}

// scalar emits the load of a parameter of type F, broadcast to all lanes, and returns the
// register.
func (v vector) scalar(name string) reg.VecVirtual {
	x := v.fresh()
	m, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	v.broadcast(m.Addr, x)
	return x
}

// loadByteCount emits the load of a parameter that counts elements, converted to bytes, and
// returns the register.
func (v vector) loadByteCount(name string) reg.GPVirtual {
	x := Load(Param(name), GP64()).(reg.GPVirtual)
	SHLQ(U8(v.sizeLog()), x)
	return x
}

// sizeLog returns the binary logarithm of the size of a number.
func (v vector) sizeLog() int {
	if v.single() {
		return 2
	}
	return 3
}

// pointer emits the load of a parameter that is a pointer or an int, and returns the register.
func pointer(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }

// mask selects lanes: in an opmask register for AVX-512, or in a vector register for AVX2.
type mask struct {
	k reg.OpmaskVirtual
	y reg.VecVirtual
	n reg.GPVirtual // number of lanes, for loads and stores on arm64
}

// first emits the mask of the first n lanes, and returns it. n must not exceed the number of
// lanes. It overwrites n.
func (v vector) first(n reg.GPVirtual) mask { return v.masks(n, 1)[0] }

// masks emits the masks of the first n lanes of one or two registers, and returns them. It
// overwrites n.
func (v vector) masks(n reg.GPVirtual, registers int) (all []mask) {
	if v.wide {
		ones := GP64()
		MOVQ(I32(-1), ones)
		BZHIQ(n, ones, ones)
		for i := range registers {
			if i > 0 {
				SHRQ(U8(v.lanes), ones)
			}
			k := K()
			KMOVW(ones.As32(), k)
			all = append(all, mask{k: k})
		}
		return all
	}
	var counts []reg.GPVirtual
	if v.neon {
		counts = v.counts(n, registers)
	}
	table, at := v.laneMasks(), GP64()
	LEAQ(table, at)
	NEGQ(n)
	for i := range registers {
		y := YMM()
		VMOVUPS(Mem{Base: at, Index: n, Scale: uint8(v.size), Disp: (2 + i) * v.bytes()}, y)
		m := mask{y: y}
		if v.neon {
			m.n = counts[i]
		}
		all = append(all, m)
	}
	return all
}

// tables holds, by the size of a number, the memory that AVX2 masks are loaded from: two registers
// of ones, then two of zeros.
var tables = map[int]Mem{}

func (v vector) laneMasks() Mem {
	table, ok := tables[v.size]
	if !ok {
		table = GLOBL(fmt.Sprint("lanes", 8*v.size), RODATA|NOPTR)
		for i := range 4 * v.bytes() / 8 {
			bits := uint64(0)
			if i < 2*v.bytes()/8 {
				bits = math.MaxUint64
			}
			DATA(8*i, U64(bits))
		}
		tables[v.size] = table
	}
	return table
}

// load emits a load of the lanes of m, which sets the others to zero.
func (v vector) load(from Op, m mask, to reg.VecVirtual) {
	switch {
	case v.neon:
		v.loadFirst(from, m, to)
	case v.wide && v.single():
		VMOVUPS_Z(from, m.k, to)
	case v.wide:
		VMOVUPD_Z(from, m.k, to)
	case v.single():
		VMASKMOVPS(from, m.y, to)
	default:
		VMASKMOVPD(from, m.y, to)
	}
}

// store emits a store of the lanes of m.
func (v vector) store(from reg.VecVirtual, m mask, to Op) {
	switch {
	case v.neon:
		v.storeFirst(from, m, to)
	case v.wide && v.single():
		VMOVUPS(from, m.k, to)
	case v.wide:
		VMOVUPD(from, m.k, to)
	case v.single():
		VMASKMOVPS(from, m.y, to)
	default:
		VMASKMOVPD(from, m.y, to)
	}
}
