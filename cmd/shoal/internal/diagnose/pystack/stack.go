package pystack

import (
	"fmt"
	"io"
	"path"
	"regexp"
	"runtime"
	"strconv"

	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/procfs"
)

// A Frame is a function call.
type Frame struct {
	Function string `json:"function"`
	File     string `json:"file"`
	Line     int    `json:"line"`
}

// String returns the frame as FUNCTION (FILE:LINE).
func (f Frame) String() string { return fmt.Sprintf("%s (%s:%d)", f.Function, f.File, f.Line) }

// A Stack is the Python stack of one thread, innermost frame first.
type Stack struct {
	TID    int     `json:"tid"` // 0 if it is not known
	Frames []Frame `json:"frames"`
}

const (
	maxThreads = 1024
	maxFrames  = 200
)

// Owners of interpreter frames that are no Python functions.
const (
	ownerInterpreter = 3 // since 3.14; before, the C stack
	ownerCStack      = 4
)

// Read returns the Python stacks of a process. The caller must have read its Maps and Threads.
// The error is [ErrNoPython] if the process has no interpreter; the stacks that were read before
// an error are returned with it.
func Read(s procfs.System, p *procfs.Process) ([]Stack, error) {
	addr, minor, err := findRuntime(s, p)
	if err != nil {
		return nil, err
	}
	f, err := open(s, p.PID)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if minor == 0 {
		minor = minorOf(p)
	}
	m, err := newMemory(f, addr, minor)
	if err != nil {
		return nil, err
	}
	return m.stacks(addr, p)
}

var versionPattern = regexp.MustCompile(`python3\.(\d+)`)

// minorOf returns the version from the name of the interpreter's files, or 0.
func minorOf(p *procfs.Process) int {
	for _, m := range p.Maps.Python {
		if v := versionPattern.FindStringSubmatch(path.Base(m.Path)); v != nil {
			n, _ := strconv.Atoi(v[1])
			return n
		}
	}
	return 0
}

func newMemory(r io.ReaderAt, runtimeAddr uint64, minor int) (memory, error) {
	m := memory{r: r}
	if o, ok := fixed[minor]; ok {
		m.o = o
		return m, nil
	}
	if minor != 0 && minor < 9 {
		return m, fmt.Errorf("%w: CPython 3.%d, want 3.9 to 3.14", errLayout, minor)
	}
	data, err := m.read(runtimeAddr, 8*debugWords)
	if err != nil {
		return m, err
	}
	m.o, err = parseDebugOffsets(data)
	return m, err
}

// stacks reads the stacks of the threads of the first interpreter. If it fails, it returns those
// that it has read with the error. runtimeAddr is the address of _PyRuntime.
func (m memory) stacks(runtimeAddr uint64, p *procfs.Process) ([]Stack, error) {
	interpreter, err := m.word(runtimeAddr + m.o.interpreters)
	if err != nil {
		return nil, err
	}
	thread, err := m.word(interpreter + m.o.threads)
	if err != nil {
		return nil, err
	}
	var all []Stack
	for n := 0; thread != 0 && n < maxThreads; n++ {
		st := Stack{TID: m.threadNumber(thread, p)}
		st.Frames, err = m.frames(thread)
		if err != nil && len(st.Frames) == 0 {
			return all, err
		}
		all = append(all, st)
		if thread, err = m.word(thread + m.o.nextThread); err != nil {
			return all, err
		}
	}
	fillThreads(all, p)
	return all, nil
}

// glibcThreadID is the offset of the thread's number in the structure that pthread_self returns.
// Before 3.11 the interpreter does not store the number.
//
// https://sourceware.org/git/?p=glibc.git;a=blob;f=nptl/descr.h;hb=glibc-2.36
const glibcThreadID = 0x2d0

// threadNumber returns the kernel's number of a thread, or 0 if it is not known. thread is the
// address of the thread state.
func (m memory) threadNumber(thread uint64, p *procfs.Process) int {
	if m.o.nativeID != 0 {
		if id, err := m.word(thread + m.o.nativeID); err == nil && hasThread(p, int(id)) {
			return int(id)
		}
	}
	if runtime.GOARCH != "amd64" {
		return 0
	}
	self, err := m.word(thread + m.o.threadID)
	if err != nil {
		return 0
	}
	id, err := m.number(self + glibcThreadID)
	if err != nil || !hasThread(p, id) {
		return 0
	}
	return id
}

func hasThread(p *procfs.Process, tid int) bool {
	for _, t := range p.Threads {
		if t.PID == tid {
			return true
		}
	}
	return false
}

// fillThreads gives the main thread's number to the only stack without one, if no other has it.
func fillThreads(all []Stack, p *procfs.Process) {
	unknown := -1
	for i, s := range all {
		if s.TID == p.PID {
			return
		}
		if s.TID == 0 {
			unknown = i // the list begins with the newest thread
		}
	}
	if unknown >= 0 {
		all[unknown].TID = p.PID
	}
}

func (m memory) frames(thread uint64) (frames []Frame, err error) {
	frame, err := m.word(thread + m.o.frame)
	if err == nil && m.o.cframe && frame != 0 {
		frame, err = m.word(frame + m.o.cframeOffset)
	}
	for n := 0; err == nil && frame != 0 && n < maxFrames; n++ {
		if !m.isInternal(frame) {
			var f Frame
			if f, err = m.frame(frame); err != nil {
				break
			}
			frames = append(frames, f)
		}
		frame, err = m.word(frame + m.o.previous)
	}
	return frames, err
}

// isInternal reports whether a frame belongs to the interpreter and has no code.
func (m memory) isInternal(frame uint64) bool {
	if m.o.owner == 0 {
		return false
	}
	b, err := m.read(frame+m.o.owner, 1)
	return err == nil && (b[0] == ownerInterpreter || b[0] == ownerCStack)
}

// tagMask removes the tag bits of a reference, which 3.14 has in frames.
const tagMask = ^uint64(7)

func (m memory) frame(addr uint64) (f Frame, err error) {
	code, err := m.word(addr + m.o.code)
	if err != nil {
		return f, err
	}
	code &= tagMask
	file, err := m.word(code + m.o.codeFile)
	if err != nil {
		return f, err
	}
	name, err := m.word(code + m.o.codeName)
	if err != nil {
		return f, err
	}
	if f.File, err = m.text(file); err != nil {
		return f, err
	}
	if f.Function, err = m.text(name); err != nil {
		return f, err
	}
	f.Line = m.line(addr, code)
	return f, nil
}

// line returns the line of a frame, the first line of its function if the exact one cannot be
// read, or 0 if neither can. frame and code are addresses.
func (m memory) line(frame, code uint64) int {
	first, err := m.number(code + m.o.codeFirstLine)
	if err != nil {
		return 0
	}
	tableAddr, err := m.word(code + m.o.codeLines)
	if err != nil {
		return first
	}
	table, err := m.bytes(tableAddr)
	if err != nil {
		return first
	}
	if m.o.minor < 11 {
		last, err := m.number(frame + m.o.instruction)
		if err != nil {
			return first
		}
		if m.o.minor == 10 {
			return lineOf310(table, first, 2*last)
		}
		return lineOf39(table, first, last)
	}
	at, err := m.word(frame + m.o.instruction)
	if err != nil {
		return first
	}
	return lineOf311(table, first, int(at-(code+m.o.codeStart)))
}
