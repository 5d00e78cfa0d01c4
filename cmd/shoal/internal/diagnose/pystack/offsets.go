package pystack

import (
	"encoding/binary"
	"fmt"
)

// offsets locates fields in the structures of one version of CPython. Since 3.13 the interpreter
// describes its own layout; for older versions they are constants, because a minor version does not
// change them.
//
// https://github.com/python/cpython/blob/v3.13.0/Include/internal/pycore_runtime.h
type offsets struct {
	minor         int // of 3.minor
	interpreters  uint64
	threads       uint64 // in the interpreter state
	nextThread    uint64
	threadID      uint64
	nativeID      uint64 // 0 if the version has none
	frame         uint64 // in the thread state
	cframe        bool   // frame is a pointer to a structure that has the frame at cframeOffset
	cframeOffset  uint64
	previous      uint64
	code          uint64 // in the frame
	instruction   uint64
	owner         uint64 // 0 if the version has none
	codeFile      uint64
	codeName      uint64
	codeFirstLine uint64
	codeLines     uint64
	codeStart     uint64
	stringASCII   uint64 // size of the header of an ASCII string
	stringCompact uint64 // size of the header of other strings
	bytesValue    uint64
}

// fixed holds the layouts of the versions before 3.13 on 64-bit machines.
var fixed = map[int]offsets{
	9: {minor: 9, interpreters: 32, threads: 8, nextThread: 8, threadID: 176, frame: 24, previous: 24, code: 32,
		instruction: 104, codeFile: 104, codeName: 112, codeFirstLine: 40, codeLines: 120,
		stringASCII: 48, stringCompact: 72, bytesValue: 32},
	10: {minor: 10, interpreters: 32, threads: 8, nextThread: 8, threadID: 176, frame: 24, previous: 24, code: 32,
		instruction: 96, codeFile: 104, codeName: 112, codeFirstLine: 40, codeLines: 120,
		stringASCII: 48, stringCompact: 72, bytesValue: 32},
	11: {minor: 11, interpreters: 40, threads: 16, nextThread: 8, threadID: 152, nativeID: 160, frame: 56, cframe: true,
		cframeOffset: 8, previous: 48, code: 32, instruction: 56, owner: 69, codeFile: 112, codeName: 120,
		codeFirstLine: 72, codeLines: 136, codeStart: 184, stringASCII: 48, stringCompact: 72, bytesValue: 32},
	12: {minor: 12, interpreters: 40, threads: 72, nextThread: 8, threadID: 136, nativeID: 144, frame: 56, cframe: true,
		cframeOffset: 0, previous: 8, code: 0, instruction: 56, owner: 70, codeFile: 112, codeName: 120,
		codeFirstLine: 68, codeLines: 136, codeStart: 192, stringASCII: 40, stringCompact: 56, bytesValue: 32},
}

const (
	cookie     = "xdebugpy"
	debugWords = 120 // the part of the layout that is read, in words of 8 bytes
)

// parseDebugOffsets decodes the layout that CPython 3.13 and later has at the beginning of
// _PyRuntime. The error wraps errLayout, for example for other versions.
func parseDebugOffsets(data []byte) (offsets, error) {
	if len(data) < 8*debugWords || string(data[:8]) != cookie {
		return offsets{}, fmt.Errorf("%w: _PyRuntime does not begin with %q", errLayout, cookie)
	}
	w := func(i int) uint64 { return binary.LittleEndian.Uint64(data[8*i:]) }
	version := w(1)
	o := offsets{minor: int(version >> 16 & 0xff), interpreters: w(5)}
	if w(2) != 0 {
		return offsets{}, fmt.Errorf("%w: free-threaded builds are not supported", errLayout)
	}
	// The sections follow one another. A later version only adds fields to the end of a section,
	// or, in 3.14, threads_main and two generations to the section of the interpreter state.
	var thread int
	switch o.minor {
	case 13:
		thread = 6 + 13
	case 14:
		thread = 6 + 16
	default:
		return offsets{}, fmt.Errorf("%w: CPython 3.%d, want 3.9 to 3.14", errLayout, o.minor)
	}
	o.threads = w(6 + 3)
	o.nextThread, o.frame = w(thread+2), w(thread+4)
	o.threadID, o.nativeID = w(thread+5), w(thread+6)
	frame := thread + 9
	o.previous, o.code, o.instruction, o.owner = w(frame+1), w(frame+2), w(frame+3), w(frame+5)
	code := frame + 6
	if o.minor >= 14 {
		code += 2
	}
	o.codeFile, o.codeName, o.codeLines, o.codeFirstLine = w(code+1), w(code+2), w(code+4), w(code+5)
	o.codeStart = w(code + 9)
	o.stringASCII, o.stringCompact, o.bytesValue = 40, 56, 32
	for _, v := range []uint64{o.interpreters, o.threads, o.frame, o.codeStart} {
		if v > 1<<20 {
			return offsets{}, fmt.Errorf("%w: offset %d in the layout of CPython 3.%d", errLayout, v, o.minor)
		}
	}
	return o, nil
}
