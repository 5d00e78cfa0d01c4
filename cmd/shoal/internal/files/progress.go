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

// long is from how many bytes on work has a bar.
const long = 64 << 20

// watch shows on a terminal how many of a number of bytes are done, until stop is called.
func watch(w io.Writer, what string, total int, done func() int64) (stop func()) {
	if f, ok := w.(*os.File); !ok || total < long || !term.IsTerminal(int(f.Fd())) {
		return func() {}
	}
	return show(w, what, total, done)
}

func show(w io.Writer, what string, total int, done func() int64) (stop func()) {
	all := mpb.New(mpb.WithOutput(w), mpb.WithWidth(80), mpb.WithAutoRefresh())
	bar := all.AddBar(int64(total), mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(words.Clean(what)+" ")), mpb.AppendDecorators(decor.CountersKibiByte("% .1f / % .1f")))
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
				bar.SetCurrent(min(done(), int64(total)-1)) // the last one ends it
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

// transferred returns how many bytes system calls of this process have read (rchar) or written
// (wchar) from now on; 0 where the system does not say.
func transferred(which string) func() int64 {
	count := func() (n int64) {
		b, _ := os.ReadFile("/proc/self/io")
		_, after, _ := strings.Cut(string(b), which+":")
		fmt.Sscan(after, &n)
		return n
	}
	before := count()
	return func() int64 { return count() - before }
}

// load is Load with a bar.
func (f Format) load(log io.Writer, path string, most int64) (Content, error) {
	size := 0
	if info, err := os.Stat(path); err == nil { // else reading says it better
		size = int(info.Size())
	}
	stop := watch(log, "read "+path, size, transferred("rchar"))
	defer stop()
	return f.Load(path, most)
}
