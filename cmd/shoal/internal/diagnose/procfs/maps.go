package procfs

import (
	"os"
	"strconv"
	"strings"
)

// Maps holds the mappings that matter here.
type Maps struct {
	Torch   bool      // the process has loaded a library of PyTorch
	Python  []Mapping // of the file that contains the interpreter, in order
	Shared  []Mapping // of files in /dev/shm
	Private []Mapping // writable and anonymous: where the interpreter has its objects
}

// A Mapping is a range of addresses.
type Mapping struct {
	Start, End, Offset uint64
	Inode              uint64
	Path               string
}

// Contains reports whether the mapping has the address.
func (m Mapping) Contains(addr uint64) bool { return addr >= m.Start && addr < m.End }

// Semaphore reports whether the mapping is a POSIX semaphore, such as a lock of multiprocessing.
func (m Mapping) Semaphore() bool { return strings.HasPrefix(m.Path, "/dev/shm/sem.") }

// ReadMaps fills Maps. If the mappings cannot be read, Maps is unchanged, and if that needs a
// permission, "maps" is added to Denied.
func (s System) ReadMaps(p *Process) {
	text, err := os.ReadFile(s.path(p.PID, "maps"))
	if err != nil {
		if os.IsPermission(err) {
			p.Denied = append(p.Denied, "maps")
		}
		return
	}
	var m Maps
	for line := range strings.Lines(string(text)) {
		r, mode, ok := parseMapping(line)
		switch {
		case !ok:
		case strings.HasPrefix(r.Path, "/dev/shm/"):
			m.Shared = append(m.Shared, r)
		case r.Path == "" || r.Path == "[heap]":
			if strings.HasPrefix(mode, "rw") && strings.HasSuffix(mode, "p") {
				m.Private = append(m.Private, r)
			}
		case isInterpreter(r.Path):
			m.Python = append(m.Python, r)
		case strings.Contains(r.Path, "libtorch"):
			m.Torch = true
		}
	}
	p.Maps = m
}

// parseMapping parses a line of a maps file. mode is a text such as "rw-p". ok is false if the
// line is malformed.
func parseMapping(line string) (m Mapping, mode string, ok bool) {
	f := strings.Fields(line)
	if len(f) < 5 {
		return m, "", false
	}
	first, last, _ := strings.Cut(f[0], "-")
	m.Start, _ = strconv.ParseUint(first, 16, 64)
	m.End, _ = strconv.ParseUint(last, 16, 64)
	m.Offset, _ = strconv.ParseUint(f[2], 16, 64)
	m.Inode, _ = strconv.ParseUint(f[4], 10, 64)
	if len(f) > 5 {
		m.Path = strings.Join(f[5:], " ")
	}
	return m, f[1], m.End > m.Start
}

// isInterpreter reports whether a file may contain the interpreter: libpython, or a program named
// python.
func isInterpreter(path string) bool {
	base := path[strings.LastIndexByte(path, '/')+1:]
	return strings.HasPrefix(base, "libpython3.") || strings.HasPrefix(base, "python3") || base == "python"
}
