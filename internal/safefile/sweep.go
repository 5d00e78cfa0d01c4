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

// unfinishedSuffix ends the names of files that have not taken their places.
const unfinishedSuffix = ".shoal-part"

// hidden is a new name beside that of a file.
func hidden(base string) string {
	const most = 200 // bytes, of 255 that a name may have
	return "." + base[:min(len(base), most)] + "." + strconv.FormatUint(rand.Uint64(), 36) + unfinishedSuffix
}

// wasHidden reports whether a name is of hidden, or of what was hidden before, which had no suffix:
// of that only the one that stands for base, with as many digits as random numbers have.
func wasHidden(name, base string) bool {
	if strings.HasPrefix(name, ".") && strings.HasSuffix(name, unfinishedSuffix) {
		return true
	}
	digits, ok := strings.CutPrefix(name, "."+base+".")
	return ok && len(digits) >= 11 && len(digits) <= 13 && strings.Trim(digits, "0123456789abcdefghijklmnopqrstuvwxyz") == ""
}

// swept are the folders where this program has looked for what killed ones have left.
var swept sync.Map

// sweep removes from a folder what killed programs of this user's have left, once.
func sweep(dir, base string) {
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
			if wasHidden(name, base) {
				sweepFile(filepath.Join(dir, name))
			}
		}
		if err != nil {
			return
		}
	}
}

// sweepFile removes a file unless its writer, or anybody else, has it open. A writer has it open
// from its beginning until it has taken its place.
func sweepFile(path string) {
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
