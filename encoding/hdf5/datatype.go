package hdf5

import (
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// Datatype classes.
const (
	classFixed    = 0
	classFloat    = 1
	classText     = 3
	classCompound = 6
	classEnum     = 8
	classLong     = 9
)

var classNames = [...]string{"integers", "floats", "times", "text", "bit fields", "opaque bytes", "records",
	"references", "an enumeration", "lists of any length", "arrays as elements", "complex numbers of HDF5 2"}

// floatFormat is the bit layout of a floating-point type: the position of the sign bit, the
// position and the size of the exponent, the size of the mantissa, and the exponent bias.
type floatFormat struct{ sign, exponentAt, exponent, mantissa, bias int }

var floats = map[tensor.DType]floatFormat{
	tensor.Float16: {15, 10, 5, 10, 15}, tensor.BFloat16: {15, 7, 8, 7, 127},
	tensor.Float32: {31, 23, 8, 23, 127}, tensor.Float64: {63, 52, 11, 52, 1023},
	tensor.Float8E4M3FN: {7, 3, 4, 3, 7}, tensor.Float8E5M2: {7, 2, 5, 2, 15},
}

var (
	signed   = map[int]tensor.DType{1: tensor.Int8, 2: tensor.Int16, 4: tensor.Int32, 8: tensor.Int64}
	unsigned = map[int]tensor.DType{1: tensor.Uint8, 2: tensor.Uint16, 4: tensor.Uint32, 8: tensor.Uint64}
)

// datatype is the type of the elements of a data set or an attribute. swapped means big-endian
// numbers, and size is the size of an element in bytes.
type datatype struct {
	dtype   tensor.DType // not set for text
	text    text
	swapped bool
	size    int
}

// sizeOf returns the size in bytes of an array with the given shape. It returns an error if a
// dimension is negative or the size overflows.
func (t datatype) sizeOf(shape ...int) (int, error) {
	return tensor.Uint8.SizeOf(append(slices.Clone(shape), t.size)...)
}

// parseDatatype decodes a datatype message and leaves c after it. depth is the nesting depth of
// the datatype, 0 for the outermost. The error wraps [ErrFormat], or [ErrUnsupported] if the
// type has no dtype and is no string.
func parseDatatype(c *cursor, depth int) (t datatype, err error) {
	first := c.readInt(1)
	class, version, bits := first&15, first>>4, c.readInt(3)
	t.size = c.readInt(4)
	if c.short || version < 1 || version > 5 || depth > 2 {
		return t, malformed("a datatype of version %d", version)
	}
	switch class {
	case classFixed:
		return t, t.readFixed(c, bits)
	case classFloat:
		return t, t.readFloat(c, bits)
	case classCompound:
		return t, t.readComplex(c, version, bits, depth)
	case classEnum:
		return t, t.readBool(c, version, bits, depth)
	case classText:
		return t, t.parseText(bits)
	case classLong:
		return t, t.parseLong(c, bits, depth)
	}
	if class < len(classNames) {
		return t, unsupported("elements that are %s", classNames[class])
	}
	return t, unsupported("elements of class %d", class)
}

func (t *datatype) readFixed(c *cursor, bits int) error {
	offset, precision := c.readInt(2), c.readInt(2)
	dt, ok := signed[t.size]
	if bits&8 == 0 {
		dt, ok = unsigned[t.size]
	}
	if !ok || offset != 0 || precision != 8*t.size {
		return unsupported("integers of %d bits in %d bytes, signed: %v", precision, t.size, bits&8 != 0)
	}
	t.dtype, t.swapped = dt, bits&1 != 0 && t.size > 1
	return nil
}

func (t *datatype) readFloat(c *cursor, bits int) error {
	offset, precision := c.readInt(2), c.readInt(2)
	f := floatFormat{sign: bits >> 8 & 255, exponentAt: c.readInt(1), exponent: c.readInt(1)}
	at := c.readInt(1)
	f.mantissa, f.bias = c.readInt(1), c.readInt(4)
	for dt, known := range floats {
		if f == known && at == 0 && offset == 0 && precision == 8*t.size && dt.Size() == t.size && bits&0x40 == 0 {
			t.dtype, t.swapped = dt, bits&1 != 0
			return nil
		}
	}
	return unsupported("floats of %d bits with a mantissa of %d", precision, f.mantissa)
}

// readComplex reads a compound type with two floating-point members "r" and "i", h5py's encoding
// of complex numbers. version and depth are those fields of the datatype, and the low 16 bits of
// members are the number of members. The error wraps [ErrUnsupported] for other compound types.
func (t *datatype) readComplex(c *cursor, version, members, depth int) error {
	var part [2]datatype
	for i, want := range []string{"r", "i"} {
		if members&0xffff != 2 {
			break
		}
		pad, width := 8, 4
		if version >= 3 {
			pad, width = 1, offsetWidth(t.size)
		}
		name, offset := c.readText(pad), c.readInt(width)
		if version == 1 {
			c.takeBytes(28)
		}
		p, err := parseDatatype(c, depth+1)
		if err != nil {
			return err
		}
		if name != want || offset != i*p.size {
			members = 0
		}
		part[i] = p
	}
	single, double := tensor.Float32, tensor.Float64
	if members&0xffff != 2 || part[0] != part[1] || part[0].dtype != single && part[0].dtype != double ||
		t.size != 2*part[0].size {
		return unsupported("elements that are records, other than h5py's complex numbers")
	}
	t.dtype, t.swapped = tensor.Complex64, part[0].swapped
	if part[0].dtype == double {
		t.dtype = tensor.Complex128
	}
	return nil
}

// offsetWidth returns the width in bytes of a member offset in a compound type of the given size
// in bytes.
func offsetWidth(size int) int {
	n := 1
	for size >>= 8; size > 0; size >>= 8 {
		n++
	}
	return n
}

// readBool reads an enumeration of FALSE and TRUE, h5py's encoding of bool. The arguments are as
// in readComplex. The error wraps [ErrUnsupported] for other enumerations.
func (t *datatype) readBool(c *cursor, version, members, depth int) error {
	base, err := parseDatatype(c, depth+1)
	if err != nil {
		return err
	}
	pad := 8
	if version >= 3 {
		pad = 1
	}
	if members&0xffff == 2 && base.size == 1 && c.readText(pad) == "FALSE" && c.readText(pad) == "TRUE" &&
		string(c.takeBytes(2)) == "\x00\x01" {
		t.dtype = tensor.Bool
		return nil
	}
	return unsupported("elements that are an enumeration, other than h5py's bool")
}

// appendDatatypeHead appends the header that is common to all datatypes. bits are the 24 class
// bits, and size is the size of an element in bytes.
func appendDatatypeHead(b []byte, class, version, bits, size int) []byte {
	b = append(b, byte(version<<4|class), byte(bits), byte(bits>>8), byte(bits>>16))
	return le.AppendUint32(b, uint32(size))
}

// appendDatatype appends the encoding of a dtype to b, as a datatype message.
func appendDatatype(b []byte, dt tensor.DType) []byte {
	switch f, isFloat := floats[dt]; {
	case isFloat:
		// 0x20 is the mantissa normalization with an implied leading bit.
		b = appendDatatypeHead(b, classFloat, 1, 0x20|f.sign<<8, dt.Size())
		b = le.AppendUint16(b, 0)
		b = le.AppendUint16(b, uint16(8*dt.Size()))
		b = append(b, byte(f.exponentAt), byte(f.exponent), 0, byte(f.mantissa))
		return le.AppendUint32(b, uint32(f.bias))
	case dt == tensor.Bool:
		b = appendDatatype(appendDatatypeHead(b, classEnum, 1, 2, 1), tensor.Int8)
		return append(b, "FALSE\x00\x00\x00TRUE\x00\x00\x00\x00\x00\x01"...)
	case dt == tensor.Complex64 || dt == tensor.Complex128:
		part := tensor.Float32
		if dt == tensor.Complex128 {
			part = tensor.Float64
		}
		b = appendDatatypeHead(b, classCompound, 3, 2, dt.Size())
		b = appendDatatype(append(b, 'r', 0, 0), part)
		return appendDatatype(append(b, 'i', 0, byte(part.Size())), part)
	default:
		bits := 8
		if unsigned[dt.Size()] == dt {
			bits = 0
		}
		b = appendDatatypeHead(b, classFixed, 1, bits, dt.Size())
		b = le.AppendUint16(b, 0)
		return le.AppendUint16(b, uint16(8*dt.Size()))
	}
}
