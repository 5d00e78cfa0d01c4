package torch

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [Handing over to Python] Python starts the program named by set_executable for every process
// of a spawn context: workers of other data sets, pools, mp.spawn, managers. If Go does not serve
// the process, it hands over: it executes the interpreter that started it, with the same arguments.
// By then it has read the pickles from the start pipe and cannot put them back. It therefore copies
// all bytes that it reads to a memory file, from which Python reads them again. The pipe stays
// open, so that Python can detect the end of its parent by it.

// start is the input of a process that Python starts in a spawn context: its code and the
// pickles on its pipe. readStart makes it.
type start struct {
	code string   // the argument of python -c
	pipe *os.File // carried the pickles; EOF means that the parent has ended
	said *os.File // a memory file with all bytes read from the pipe
}

// readStart reads the two pickles that the parent writes to the pipe with the descriptor number
// pipe: see Note [Starting Python]. code is the argument of python -c. The pipe stays open in
// the result.
func readStart(code string, pipe int) (*start, error) {
	said, err := sys.Memfd("start")
	if err != nil {
		return nil, err
	}
	s := &start{code, os.NewFile(uintptr(pipe), "start"), said}
	in := bufio.NewReaderSize(io.TeeReader(s.pipe, said), 1<<16)
	for range 2 {
		if err := pickle.Skip(in); err != nil {
			return nil, fmt.Errorf("read the start message of the parent process: %w", err)
		}
	}
	return s, nil
}

// decode decodes the two pickles of the parent: the preparation data of the interpreter and the
// process object, which is a *pickle.Object for a process that Go can serve. It may be called
// several times.
func (s *start) decode() (preparation *python.Dict, process any, err error) {
	if _, err := s.said.Seek(0, io.SeekStart); err != nil {
		return nil, nil, err
	}
	// generous limits: the parent selected the program that reads its data
	d := pickle.NewDecoder(s.said, inertNames, pickle.Limits{Bytes: 64 << 30, Items: 1 << 30})
	first, err := d.Decode()
	if err != nil {
		return nil, nil, err
	}
	preparation, ok := first.(*python.Dict)
	if !ok {
		return nil, nil, protocolError("preparation data is %T, want a dict", first)
	}
	process, err = d.Decode()
	return preparation, process, err
}

// mentionsAny reports whether one of the words occurs in the parent's pickles. It returns false
// if they cannot be mapped.
func (s *start) mentionsAny(words ...string) bool {
	st, err := s.said.Stat()
	if err != nil {
		return false
	}
	b, err := sys.Map(s.said, int(st.Size()))
	if err != nil {
		return false
	}
	defer sys.Unmap(b)
	return slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(b, []byte(w)) })
}

// reads is Python code that makes spawn_main read the pickles from another descriptor than the
// pipe, while it still detects the parent's end by the pipe.
const reads = "import os, multiprocessing.spawn as s; " +
	"s._main = lambda pipe, *rest, main=s._main: (os.close(pipe), main(%d, *rest))[1]; "

// handOverToPython replaces the program by the Python interpreter that started it, which then
// runs the target: see Note [Handing over to Python]. It returns only on an error. The caller
// must not have read s.said other than through decode and mentionsAny.
func (s *start) handOverToPython() error {
	if _, err := s.said.Seek(0, io.SeekStart); err != nil {
		return err
	}
	said, err := sys.DuplicateInherited(s.said)
	if err != nil {
		return err
	}
	return becomePython(fmt.Sprintf(reads, said) + s.code)
}
