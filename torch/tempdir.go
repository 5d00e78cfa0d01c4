package torch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/shoal-mp/shoal/internal/sys"
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
		path, err := os.MkdirTemp(parent, tempPrefix)
		if err == nil {
			d.path = path
			d.mark(os.Getpid())
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

// swept are the places where sweepTempDirs has run.
var swept sync.Map

// sweepTempDirs removes the directories whose processes have all been killed.
func sweepTempDirs(parent string) {
	marks, _ := filepath.Glob(filepath.Join(parent, tempPrefix+"*", namePrefix+"*"))
	needed := map[string]bool{}
	for _, m := range marks {
		owner, ok := ownerOf(filepath.Base(m))
		needed[filepath.Dir(m)] = needed[filepath.Dir(m)] || !ok || owner.alive()
	}
	for dir, is := range needed {
		if !is {
			os.RemoveAll(dir)
		}
	}
}

// mark says that a process needs the directory as long as it lives. A directory without marks stays
// if all processes that would remove it are killed.
func (d *tempDir) mark(pid int) {
	if start, err := sys.StartTime(pid); err == nil && d.path != "" {
		os.WriteFile(filepath.Join(d.path, fmt.Sprintf("%s%d_%d_0", namePrefix, pid, start)), nil, 0o600)
	}
}
