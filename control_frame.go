package shoal

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Control frames are exchanged on the control socket between a process and a worker that it
// started. See PROTOCOL.md, section Spawn:
//
//	0  length of the body, 4 bytes, little endian
//	4  kind, 1 byte
//	5  body, MessagePack
const frameHeader = 5

type frameKind byte

const (
	frameJob    frameKind = 1 // to the worker: the function to run
	frameCancel frameKind = 2 // to the worker: stop, with the cause
	frameReady  frameKind = 3 // from the worker: the argument has been decoded, its blocks are held
	frameDone   frameKind = 4 // from the worker: the result of the job

	// frameRefused is the only frame from a worker of another version. Its text describes both
	// versions. The frame and the header must stay the same in all versions.
	frameRefused frameKind = 5
)

// maxFrame is the maximum body length that a reader accepts. It exceeds the default limit of an
// argument.
const maxFrame = 96 << 20

func appendFrame(b []byte, kind frameKind, body []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
	b = append(b, byte(kind))
	return append(b, body...)
}

// parseHeader returns the kind of a frame and the length of its body in bytes. h must have at
// least [frameHeader] bytes. It returns an error if the body exceeds [maxFrame].
func parseHeader(h []byte) (frameKind, int, error) {
	n := binary.LittleEndian.Uint32(h)
	if n > maxFrame {
		return 0, 0, fmt.Errorf("shoal: control frame has %d bytes, want at most %d", n, maxFrame)
	}
	return frameKind(h[4]), int(n), nil
}

// readFrame blocks until it has read one control frame from r, and returns its kind and body. It
// returns [io.EOF] if r ends before the frame, and [io.ErrUnexpectedEOF] if it ends within the
// frame or its header is incomplete.
func readFrame(r io.Reader) (frameKind, []byte, error) {
	var h [frameHeader]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return 0, nil, err
	}
	kind, n, err := parseHeader(h[:])
	if err != nil {
		return 0, nil, err
	}
	if n <= promised {
		body := make([]byte, n)
		_, err = io.ReadFull(r, body)
		return kind, body, err
	}
	body, err := io.ReadAll(io.LimitReader(r, int64(n))) // allocates as the bytes arrive
	if err == nil && len(body) < n {
		err = io.ErrUnexpectedEOF
	}
	return kind, body, err
}

// promised is the maximum size of a body for which memory is allocated before it arrives.
const promised = 1 << 20

// controlFrames is an [io.Writer] that splits a stream into control frames and calls each with
// every frame. The body is valid until each returns.
type controlFrames struct {
	part []byte
	each func(kind frameKind, body []byte)
	err  error // after an error, input is discarded, so that the writer does not block
}

func (f *controlFrames) Write(p []byte) (int, error) {
	if f.err == nil {
		f.part = append(f.part, p...)
		for f.handleNext() {
		}
	}
	return len(p), nil
}

// handleNext removes one complete frame from f.part, calls f.each with it, and returns true. It
// returns false if there is none, or if the header is invalid; then it sets f.err.
func (f *controlFrames) handleNext() bool {
	if len(f.part) < frameHeader {
		return false
	}
	kind, n, err := parseHeader(f.part)
	if err != nil {
		f.err, f.part = err, nil
		return false
	}
	if len(f.part) < frameHeader+n {
		return false
	}
	f.each(kind, f.part[frameHeader:frameHeader+n])
	f.part = f.part[frameHeader+n:]
	return true
}
