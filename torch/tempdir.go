package torch

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// A tempDir is the directory where multiprocessing places the sockets of a process started by this
// one. Go creates it, rather than Python, so that it is removed even if the process is killed. It
// is reference-counted and removed by the last user: the process, this process during the handover,
// and the sharer that serves descriptors handed over. If this process ends first, leave.py removes
// it. If leave.py cannot, the next program that starts a Python through this package does; marks in
// the directory identify its users.
type tempDir struct {
	path string // "" if it could not be created, and Python creates its own
	mu   sync.Mutex
	in   int
}

// tempPrefix is the prefix of Python's own directories, which is used here too:
// https://github.com/python/cpython/blob/v3.13.0/Lib/multiprocessing/util.py.
const tempPrefix = "pymp-"

// newTempDir creates a tempDir where Python would create its own in the environment env, or in
// the environment of this process if env is nil. The caller must call release.
func newTempDir(env []string) *tempDir {
	d := &tempDir{in: 1}
	for _, parent := range temporaryDirs(env) {
		if _, done := swept.LoadOrStore(parent, true); !done {
			sweepTempDirs(parent)
		}
		if path, err := createMarkedDir(parent); err == nil {
			d.path = path
			break
		}
	}
	return d
}

// createMarkedDir creates a directory in parent with a mark of this process, and returns its
// path. At first the mark is part of the directory's name; the directory gets its final name
// when the mark is inside. It is therefore attributable at every moment at which this process
// may be killed.
func createMarkedDir(parent string) (string, error) {
	mark, err := markOf(os.Getpid())
	if err != nil { // /proc is not mounted
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

// tempRandom is the number of random characters, of 5 bits each, in a name. It is Python's number,
// because the path of a Unix socket is limited to 108 bytes. A name must be unique: Rename would
// replace an empty directory with the same name.
const tempRandom = 8

// temporaryDirs returns the directories that Python's tempfile tries under the environment env,
// in its order: https://github.com/python/cpython/blob/v3.13.0/Lib/tempfile.py. A nil env means
// the environment of this process.
func temporaryDirs(env []string) (places []string) {
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

func (d *tempDir) retain() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.in++
}

func (d *tempDir) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.in--
	if d.in == 0 && d.path != "" {
		removeDir(d.path)
	}
}

// removeDir removes a directory and its content. It renames it first, to a name with a mark of
// this process, because the marks inside may be deleted before the rest and this process may be
// killed in between. Errors are ignored.
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

// swept is the set of directories that sweepTempDirs has processed.
var swept sync.Map

// sweepTempDirs removes the marked directories in parent that belong to processes which have all
// ended.
func sweepTempDirs(parent string) {
	marks, _ := filepath.Glob(filepath.Join(parent, tempPrefix+"*", namePrefix+"*"))
	unfinished, _ := filepath.Glob(filepath.Join(parent, tempPrefix+namePrefix+"*"))
	needed := map[string]bool{}
	for _, dir := range unfinished {
		mark, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), tempPrefix), "-")
		o, ok := parseOwner(mark)
		needed[dir] = !ok || !o.hasEnded()
	}
	for _, m := range marks {
		o, ok := parseOwner(filepath.Base(m))
		needed[filepath.Dir(m)] = needed[filepath.Dir(m)] || !ok || !o.hasEnded()
	}
	for dir, is := range needed {
		if !is {
			removeDir(dir)
		}
	}
}

// markProcess records that a process uses the directory while it lives. A directory without marks
// is never removed by sweepTempDirs.
func (d *tempDir) markProcess(pid int) {
	if mark, err := markOf(pid); err == nil && d.path != "" {
		os.WriteFile(filepath.Join(d.path, mark), nil, 0o600)
	}
}

// markOf returns the name of a process's mark: the file in a directory that identifies the
// process as its user.
func markOf(pid int) (string, error) {
	return ownerName(pid, 0)
}
