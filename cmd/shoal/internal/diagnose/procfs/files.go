package procfs

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A File is an open descriptor.
type File struct {
	FD     int
	Target string // as readlink returns it, such as pipe:[123] or /dev/shm/torch_1_2_3 (deleted)
	Flags  int    // of open(2)
}

// Access modes in [File.Flags].
const (
	ReadOnly  = 0
	WriteOnly = 1
	ReadWrite = 2
)

// Mode returns the access mode of a pipe: [ReadOnly], [WriteOnly] or [ReadWrite]. Other files
// have no Flags, so the result says nothing about them.
func (f File) Mode() int { return f.Flags & 3 }

// Pipe returns the pipe's identity, such as pipe:[123], or "" if the file is not a pipe.
func (f File) Pipe() string {
	if strings.HasPrefix(f.Target, "pipe:[") {
		return f.Target
	}
	return ""
}

// Torch reports whether the file is a tensor's shared memory, as PyTorch names it.
func (f File) Torch() bool { return strings.HasPrefix(f.Target, "/dev/shm/torch_") }

// maxFlagFiles limits how many fdinfo files are read.
const maxFlagFiles = 4096

// ReadFiles fills Files. If the descriptors cannot be read, Files is unchanged, and if that needs a
// permission, "fd" is added to Denied. Only pipes have Flags, because other files do not need them
// and each fdinfo costs a system call.
func (s System) ReadFiles(p *Process) {
	dir := s.path(p.PID, "fd")
	entries, err := os.ReadDir(dir)
	if err != nil {
		if os.IsPermission(err) {
			p.Denied = append(p.Denied, "fd")
		}
		return
	}
	p.Files = p.Files[:0]
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		f := File{FD: fd}
		f.Target, _ = os.Readlink(filepath.Join(dir, e.Name()))
		if f.Pipe() != "" && len(p.Files) < maxFlagFiles {
			f.Flags = s.readFlags(p.PID, fd)
		}
		p.Files = append(p.Files, f)
	}
}

// readFlags reads the flags of a descriptor from fdinfo, where they are in octal. It returns 0
// if they cannot be read.
func (s System) readFlags(pid, fd int) int {
	text, _ := os.ReadFile(s.path(pid, "fdinfo/"+strconv.Itoa(fd)))
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "flags:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(rest), 8, 64)
			return int(n)
		}
	}
	return 0
}
