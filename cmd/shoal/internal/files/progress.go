package files

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/shoal-mp/shoal/cmd/internal/words"
)

// long is the minimum size of an operation with a progress bar, in bytes.
const long = 64 << 20

// startProgress draws a progress bar on w if w is a terminal and total is at least [long]. done
// must return the number of bytes processed so far. The caller must call stop.
func startProgress(w io.Writer, what string, total int, done func() int64) (stop func()) {
	if f, ok := w.(*os.File); !ok || total < long || !term.IsTerminal(int(f.Fd())) {
		return func() {}
	}
	return drawProgress(w, what, total, done)
}

func drawProgress(w io.Writer, what string, total int, done func() int64) (stop func()) {
	all := mpb.New(mpb.WithOutput(w), mpb.WithWidth(80), mpb.WithAutoRefresh())
	bar := all.AddBar(int64(total), mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(words.Clean(what)+" ")),
		mpb.AppendDecorators(decor.CountersKibiByte("% .1f / % .1f")))
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				bar.SetCurrent(min(done(), int64(total)-1)) // total would end the bar
			}
		}
	}()
	return func() {
		close(quit)
		<-ended
		bar.Abort(true)
		all.Wait()
	}
}

// transferCounter returns a function that reports how many bytes this process has read or
// written by system calls since transferCounter was called. which is the field of /proc/self/io:
// rchar or wchar. The function returns 0 where that file is missing.
func transferCounter(which string) func() int64 {
	count := func() (n int64) {
		b, _ := os.ReadFile("/proc/self/io")
		_, after, _ := strings.Cut(string(b), which+":")
		fmt.Sscan(after, &n)
		return n
	}
	before := count()
	return func() int64 { return count() - before }
}

// load calls f.Load with a progress bar.
func (f Format) load(log io.Writer, path string, most int64) (Content, error) {
	size := 0
	if info, err := os.Stat(path); err == nil { // if it fails, Load returns a better error
		size = int(info.Size())
	}
	stop := startProgress(log, "read "+path, size, transferCounter("rchar"))
	defer stop()
	return f.Load(path, most)
}
