package safefile

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/shoal-mp/shoal/internal/sys"
)

// unfinishedSuffix is the suffix of the hidden names of unfinished replacements.
const unfinishedSuffix = ".shoal-part"

// hiddenName returns a new hidden name derived from base.
func hiddenName(base string) string {
	const most = 200 // bytes; a name may have 255
	return "." + base[:min(len(base), most)] + "." + strconv.FormatUint(rand.Uint64(), 36) + unfinishedSuffix
}

// isHiddenName reports whether name was made by hiddenName. It also recognizes names for base
// without the suffix, which earlier versions used: base and 11 to 13 digits of a random number.
func isHiddenName(name, base string) bool {
	if strings.HasPrefix(name, ".") && strings.HasSuffix(name, unfinishedSuffix) {
		return true
	}
	digits, ok := strings.CutPrefix(name, "."+base+".")
	return ok && len(digits) >= 11 && len(digits) <= 13 &&
		strings.Trim(digits, "0123456789abcdefghijklmnopqrstuvwxyz") == ""
}

// swept contains the directories that this process has swept.
var swept sync.Map

// removeLeftovers removes files from a directory that killed programs left there. It runs once per
// directory and process.
func removeLeftovers(dir, base string) {
	if _, done := swept.LoadOrStore(dir, true); done {
		return
	}
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	defer d.Close()
	for {
		names, err := d.Readdirnames(1 << 10)
		for _, name := range names {
			if isHiddenName(name, base) {
				removeLeftover(filepath.Join(dir, name))
			}
		}
		if err != nil {
			return
		}
	}
}

// removeLeftover removes a file unless a process has it open. A writer keeps its file open from
// creation until after the rename.
func removeLeftover(path string) {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return
	}
	f, err := Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	if !sys.Abandoned(f) {
		return
	}
	is, err1 := os.Lstat(path)
	was, err2 := f.Stat()
	if err1 == nil && err2 == nil && os.SameFile(is, was) {
		os.Remove(path)
	}
}
