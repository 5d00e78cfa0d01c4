package codec

import "fmt"

// Leading bytes of MessagePack, https://github.com/msgpack/msgpack/blob/master/spec.md.
// The fix forms carry their value or length in the low bits.
const (
	fixintMax   = 0x7f // 0x00–0x7f  the number itself
	fixmap      = 0x80 // 0x80–0x8f  4 bits of length
	fixarray    = 0x90 // 0x90–0x9f  4 bits of length
	fixstr      = 0xa0 // 0xa0–0xbf  5 bits of length
	codeNil     = 0xc0
	codeFalse   = 0xc2
	codeTrue    = 0xc3
	codeBin8    = 0xc4
	codeBin16   = 0xc5
	codeBin32   = 0xc6
	codeExt8    = 0xc7
	codeExt16   = 0xc8
	codeExt32   = 0xc9
	codeFloat32 = 0xca
	codeFloat64 = 0xcb
	codeUint8   = 0xcc
	codeUint64  = 0xcf
	codeInt8    = 0xd0
	codeInt64   = 0xd3
	codeFixext1 = 0xd4
	codeFixext2 = 0xd5
	codeFixext4 = 0xd6
	codeFixext8 = 0xd7
	codeFix16   = 0xd8
	codeStr8    = 0xd9
	codeStr16   = 0xda
	codeStr32   = 0xdb
	codeArray16 = 0xdc
	codeArray32 = 0xdd
	codeMap16   = 0xde
	codeMap32   = 0xdf
	negFixint   = 0xe0 // 0xe0–0xff  the number itself, −32 … −1
)

// Extension types.
const (
	// ExtBlock is the MessagePack extension type of a handle, the letter S. Its payload of one or
	// two bytes is the big-endian index of a block in Message.Blocks.
	ExtBlock = 'S'

	// extAgain, the letter A, stands for a value that was written before in the message, see
	// CustomOnce. Its payload of one or four bytes is the number of the value among these.
	extAgain = 'A'

	// extTime is MessagePack's own timestamp, type −1.
	extTime = 0xff
)

// kindOfCode returns the kind of value that begins with the leading byte c, such as "a map". It
// is used in errors and by skipOne.
func kindOfCode(c byte) string {
	switch {
	case c <= fixintMax, c >= negFixint, c >= codeUint8 && c <= codeInt64:
		return "an integer"
	case c < fixarray, c == codeMap16, c == codeMap32:
		return "a map"
	case c < fixstr, c == codeArray16, c == codeArray32:
		return "an array"
	case c < codeNil, c >= codeStr8 && c <= codeStr32:
		return "a string"
	case c == codeNil:
		return "nil"
	case c == codeFalse, c == codeTrue:
		return "a boolean"
	case c >= codeBin8 && c <= codeBin32:
		return "bytes"
	case c == codeFloat32, c == codeFloat64:
		return "a float"
	case c >= codeExt8 && c <= codeExt32, c >= codeFixext1 && c <= codeFix16:
		return "an extension"
	}
	return fmt.Sprintf("unused byte %#x", c)
}
