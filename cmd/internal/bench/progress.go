package bench

import (
	"fmt"
	"io"
	"os"
)

// A progress shows the current measurement in one line of a terminal. It prints nothing if the
// writer is not a terminal.
type progress struct {
	w io.Writer // nil unless a terminal
	n int       // steps so far
}

func newProgress(w io.Writer) *progress {
	f, ok := w.(*os.File)
	if !ok {
		return new(progress)
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return new(progress)
	}
	return &progress{w: w}
}

// eraseLine returns the cursor to column 1 and clears the line.
const eraseLine = "\r\x1b[K"

func (p *progress) showStep(name string) {
	if p.n++; p.w != nil {
		fmt.Fprintf(p.w, eraseLine+"%c %4d %s", `|/-\`[p.n%4], p.n, name)
	}
}

func (p *progress) clearLine() {
	if p.w != nil {
		fmt.Fprint(p.w, eraseLine)
	}
}
