package ptx

// A Type is the type of elements in memory.
type Type string

// The types of elements. Bits types are copied without interpretation.
const (
	Bool     Type = "bool"
	Uint8    Type = "u8"
	Int8     Type = "s8"
	Int16    Type = "s16"
	Int32    Type = "s32"
	Int64    Type = "s64"
	Float16  Type = "f16"
	BFloat16 Type = "bf16"
	Float32  Type = "f32"
	Float64  Type = "f64"
	Bits8    Type = "b8"
	Bits16   Type = "b16"
	Bits32   Type = "b32"
	Bits64   Type = "b64"
)

// Size returns the size of an element in bytes.
func (t Type) Size() int {
	switch t {
	case Bool, Uint8, Int8, Bits8:
		return 1
	case Int16, Float16, BFloat16, Bits16:
		return 2
	case Int32, Float32, Bits32:
		return 4
	}
	return 8
}

// isFloat reports whether t is a floating-point type.
func (t Type) isFloat() bool { return t == Float16 || t == BFloat16 || t == Float32 || t == Float64 }

// computeType returns the type of the registers in which elements of type t are computed: Float32,
// Float64, or Int64 for integers and Bool. It returns Bits8 to Bits64 unchanged, because their
// elements are only copied.
func (t Type) computeType() Type {
	switch t {
	case Float16, BFloat16, Float32:
		return Float32
	case Float64:
		return Float64
	case Bits8, Bits16, Bits32, Bits64:
		return t
	}
	return Int64
}

// storageType returns the type in the names of the instructions that load and store an element
// of type t.
func (t Type) storageType() Type {
	switch t {
	case Bool:
		return Uint8
	case Float16, BFloat16:
		return Bits16
	}
	return t
}

// toClass converts a loaded value of type t to its class; see [Type.computeType].
func (a *asm) toClass(t Type, v string) string {
	switch t {
	case Bool, Uint8:
		return a.emitResult("cvt.s64.u32", v)
	case Int16:
		return a.emitResult("cvt.s64.s16", v)
	case Int8, Int32:
		return a.emitResult("cvt.s64.s32", v)
	case Float16:
		return a.emitResult("cvt.f32.f16", v)
	case BFloat16:
		return a.emitResult("shl.b32", a.emitResult("cvt.u32.u16", v), "16")
	}
	return v
}

// toStored converts a value in the class of t to the register of an instruction that stores t.
func (a *asm) toStored(t Type, v string) string {
	switch t {
	case Int16:
		return a.emitResult("cvt.u16.u64", v)
	case Bool, Uint8, Int8, Int32:
		return a.emitResult("cvt.u32.u64", v)
	case Float16:
		return a.emitResult("cvt.rn.f16.f32", v)
	case BFloat16: // round to nearest, ties to even
		odd := a.emitResult("and.b32", a.emitResult("shr.u32", v, "16"), "1")
		rounded := a.emitResult("shr.u32", a.emitResult("add.u32", a.emitResult("add.u32", v, "0x7fff"), odd), "16")
		return a.emitResult("cvt.u16.u32",
			a.emitResult("selp.b32", "0x7fc0", rounded, a.emitResult("setp.nan.f32", v, v)))
	}
	return v
}

// cast converts a value between the classes Float32, Float64 and Int64, as the host does: a
// float is truncated to an integer.
func (a *asm) cast(to, from Type, v string) string {
	switch {
	case to == from:
		return v
	case to == Int64:
		return a.emitResult("cvt.rzi.s64."+string(from), v)
	case to == Float64 && from == Float32:
		return a.emitResult("cvt.f64.f32", v)
	}
	return a.emitResult("cvt.rn."+string(to)+"."+string(from), v)
}
