package domains

import (
	"path"
	"strings"

	"github.com/shoal-mp/shoal/internal/sys"
)

// spawned is the script of a process that multiprocessing has spawned.
const spawned = "spawned"

// isPython reports whether a program's name is the name of a Python interpreter, such as
// python3.14.
func isPython(name string) bool {
	return strings.HasPrefix(name, "python") || strings.HasPrefix(name, "pypy")
}

// scriptName returns the script or the module of a Python command line, and "" if the command
// line has neither or is of another program. words must not be empty. multiprocessing starts
// processes of its method spawn with a command of -c: the result for them is [spawned].
func scriptName(words []string) string {
	if !isPython(path.Base(words[0])) {
		return ""
	}
	for i := 1; i < len(words); i++ {
		word := words[i]
		switch {
		case word == "-c":
			if i+1 < len(words) && strings.HasPrefix(words[i+1], "from multiprocessing.spawn import") {
				return spawned
			}
			return ""
		case word == "-m":
			if i+1 < len(words) {
				return words[i+1]
			}
			return ""
		case word == "-W", word == "-X", word == "--check-hash-based-pycs":
			i++ // its argument
		case !strings.HasPrefix(word, "-"):
			return path.Base(word)
		}
	}
	return ""
}

// scriptOf returns the script of a process, or "" if it has none. For a spawned process it is
// the script of the parent, marked as spawned.
func (w *Watcher) scriptOf(pid int, table map[int]sys.ProcessEntry) string {
	script := w.factsOf(pid, table[pid].Start).script
	if script != spawned {
		return script
	}
	parent, ok := table[table[pid].Parent]
	if !ok {
		return script
	}
	if from := w.factsOf(table[pid].Parent, parent.Start).script; from != "" && from != spawned {
		return from + " (" + spawned + ")"
	}
	return script
}
