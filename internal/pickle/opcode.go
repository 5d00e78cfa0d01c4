package pickle

// The opcodes of the dialect, with Python's names:
// https://github.com/python/cpython/blob/v3.13.0/Lib/pickletools.py. Extension codes and
// out-of-band buffers are not supported.
const (
	opMark            = '('
	opStop            = '.'
	opPop             = '0'
	opPopMark         = '1'
	opDup             = '2'
	opBinBytes        = 'B'
	opShortBinBytes   = 'C'
	opBinFloat        = 'G'
	opBinInt          = 'J'
	opBinInt1         = 'K'
	opBinInt2         = 'M'
	opNone            = 'N'
	opBinPersID       = 'Q'
	opReduce          = 'R'
	opBinString       = 'T'
	opShortBinString  = 'U'
	opBinUnicode      = 'X'
	opAppend          = 'a'
	opBuild           = 'b'
	opGlobal          = 'c'
	opAppends         = 'e'
	opBinGet          = 'h'
	opLongBinGet      = 'j'
	opBinPut          = 'q'
	opLongBinPut      = 'r'
	opSetItem         = 's'
	opTuple           = 't'
	opSetItems        = 'u'
	opEmptyTuple      = ')'
	opEmptyList       = ']'
	opEmptyDict       = '}'
	opProto           = 0x80
	opNewObj          = 0x81
	opTuple1          = 0x85
	opTuple2          = 0x86
	opTuple3          = 0x87
	opNewTrue         = 0x88
	opNewFalse        = 0x89
	opLong1           = 0x8a
	opLong4           = 0x8b
	opShortBinUnicode = 0x8c
	opBinUnicode8     = 0x8d
	opBinBytes8       = 0x8e
	opEmptySet        = 0x8f
	opAddItems        = 0x90
	opFrozenSet       = 0x91
	opNewObjEx        = 0x92
	opStackGlobal     = 0x93
	opMemoize         = 0x94
	opFrame           = 0x95
	opByteArray8      = 0x96

	// Protocols 0 and 1, which are only read.
	opInt     = 'I'
	opLong    = 'L'
	opFloat   = 'F'
	opString  = 'S'
	opUnicode = 'V'
	opPut     = 'p'
	opGet     = 'g'
	opPersID  = 'P'
	opList    = 'l'
	opDict    = 'd'
	opInst    = 'i'
	opObj     = 'o'
)

// The protocols that can be written. Older ones can only be read.
const (
	minProtocol = 2
	maxProtocol = 5
)
