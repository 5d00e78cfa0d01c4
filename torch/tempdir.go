package torch

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// A tempDir is the directory where multiprocessing puts the sockets of a process that this one has started. It is made here and not by
// Python, so that it goes however that process ends: with the last of those who need it, the process, its heir, and the sharer that serves
// what it has left. Where this process ends first, leave.py removes it; where that is too late, since this process has taken over what was
// left, the next program of Shoal's that starts a Python does, which sees by the mark in it whose it was.
type tempDir struct {
	path string // "" where none could be made, and Python makes its own
	mu   sync.Mutex
	in   int
}

// tempPrefix is how Python's own begin, too.
const tempPrefix = "pymp-"

// newTempDir makes one where Python would with that environment. The caller leaves it.
func newTempDir(env []string) *tempDir {
	d := &tempDir{in: 1}
	for _, parent := range temporaryPlaces(env) {
		if _, done := swept.LoadOrStore(parent, true); !done {
			sweepTempDirs(parent)
		}
		path, err := os.MkdirTemp(parent, tempPrefix)
		if err == nil {
			d.path = path
			break
		}
	}
	return d
}

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
		os.RemoveAll(d.path)
	}
}

// swept are the places where that was done.
var swept sync.Map

// sweepTempDirs removes the directories whose heirs have been killed.
func sweepTempDirs(parent string) {
	marks, _ := filepath.Glob(filepath.Join(parent, tempPrefix+"*", namePrefix+"*"))
	for _, m := range marks {
		if owner, ok := ownerOf(filepath.Base(m)); ok && !owner.alive() {
			os.RemoveAll(filepath.Dir(m))
		}
	}
}

// inherit enters for a sharer whose address is there, and marks the directory as this process's.
func (d *tempDir) inherit() {
	d.enter()
	if name, err := freshName(); err == nil && d.path != "" {
		os.WriteFile(d.path+name, nil, 0o600) // without it the directory stays, if this process is killed
	}
}
