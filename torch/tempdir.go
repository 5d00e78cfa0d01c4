package torch

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// A tempDir is the directory where multiprocessing puts the sockets of a process that this one has
// started. Go makes it, and not Python, so that it is removed however that process ends. It goes
// with the last that needs it: the process, this process while it takes over, and the sharer that
// serves the descriptors left. If this process ends first, leave.py removes it. If leave.py cannot,
// the next program of Shoal's that starts a Python does. The marks in the directory say whose it
// was.
type tempDir struct {
	path string // "" if Go could not make one, and Python makes its own
	mu   sync.Mutex
	in   int
}

// tempPrefix is also the prefix of Python's own directories.
const tempPrefix = "pymp-"

// newTempDir makes a tempDir where Python would with that environment. The caller leaves it.
func newTempDir(env []string) *tempDir {
	d := &tempDir{in: 1}
	for _, parent := range temporaryPlaces(env) {
		if _, done := swept.LoadOrStore(parent, true); !done {
			sweepTempDirs(parent)
		}
		if path, err := markedDir(parent); err == nil {
			d.path = path
			break
		}
	}
	return d
}

// markedDir makes a directory with a mark of this process. It has the mark in its name at first,
// and gets its own name when the mark is in it. So at whatever moment this process is killed, the
// directory says whose it was.
func markedDir(parent string) (string, error) {
	mark, err := markOf(os.Getpid())
	if err != nil { // there is no /proc
		return os.MkdirTemp(parent, tempPrefix)
	}
	made, err := os.MkdirTemp(parent, tempPrefix+mark+"-*")
	if err != nil {
		return "", err
	}
	path := filepath.Join(parent, tempPrefix+strings.ToLower(rand.Text()[:tempRandom]))
	if err = os.WriteFile(filepath.Join(made, mark), nil, 0o600); err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(made))
	}
	return path, nil
}

// tempRandom is how many random letters and digits, of 5 bits each, a name has: as many as
// Python's, since a socket in it has a path of 108 bytes at most. Rename would take the
// place of an empty directory of the same name.
const tempRandom = 8

// temporaryPlaces are the directories that Python's tempfile tries, in its order.
func temporaryPlaces(env []string) (places []string) {
	if env == nil {
		env = os.Environ()
	}
	for _, name := range []string{"TMPDIR=", "TEMP=", "TMP="} {
		last := ""
		for _, v := range env {
			if strings.HasPrefix(v, name) {
				last = strings.TrimPrefix(v, name)
			}
		}
		if strings.HasPrefix(last, "/") {
			places = append(places, last)
		}
	}
	return append(places, "/tmp", "/var/tmp", "/usr/tmp")
}

func (d *tempDir) enter() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.in++
}

func (d *tempDir) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.in--
	if d.in == 0 && d.path != "" {
		removeDir(d.path)
	}
}

// removeDir removes a directory, which gets a name with a mark of this process first: the marks in
// it may go before the rest does, and this process may be killed in between.
func removeDir(path string) {
	if mark, err := markOf(os.Getpid()); err == nil {
		dir, name := filepath.Split(path)
		going := dir + tempPrefix + mark + name[strings.LastIndex(name, "-"):]
		if os.Rename(path, going) == nil {
			path = going
		}
	}
	os.RemoveAll(path)
}

// swept are the places where sweepTempDirs has run.
var swept sync.Map

// sweepTempDirs removes the directories whose processes have all been killed.
func sweepTempDirs(parent string) {
	marks, _ := filepath.Glob(filepath.Join(parent, tempPrefix+"*", namePrefix+"*"))
	unfinished, _ := filepath.Glob(filepath.Join(parent, tempPrefix+namePrefix+"*"))
	needed := map[string]bool{}
	for _, dir := range unfinished {
		mark, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), tempPrefix), "-")
		o, ok := parseOwner(mark)
		needed[dir] = !ok || !o.ended()
	}
	for _, m := range marks {
		o, ok := parseOwner(filepath.Base(m))
		needed[filepath.Dir(m)] = needed[filepath.Dir(m)] || !ok || !o.ended()
	}
	for dir, is := range needed {
		if !is {
			removeDir(dir)
		}
	}
}

// mark says that a process needs the directory as long as it lives. A directory without marks stays
// if all processes that would remove it are killed.
func (d *tempDir) mark(pid int) {
	if mark, err := markOf(pid); err == nil && d.path != "" {
		os.WriteFile(filepath.Join(d.path, mark), nil, 0o600)
	}
}

// markOf returns the name of a process's mark.
func markOf(pid int) (string, error) {
	return ownerName(pid, 0)
}
