package shoal_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal"
)

func FuzzControlFrame_Read(f *testing.F) {
	f.Add([]byte("\x02\x00\x00\x00\x03\x91\x01\x00\x00\x00\x00\x04"), 1)
	f.Add([]byte("\xff\xff\xff\xff\x01"), 2)
	f.Add([]byte("\x05\x00\x00\x00\x01\x93"), 3)
	f.Fuzz(func(t *testing.T, stream []byte, n int) {
		kinds, bodies, _ := shoal.CutFrames(stream, max(1, n%64))
		wantKinds, want := shoal.ReadFrames(stream)
		if !bytes.Equal(kinds, wantKinds) || !slices.EqualFunc(bodies, want, bytes.Equal) {
			t.Fatalf("in pieces %v %q, whole %v %q", kinds, bodies, wantKinds, want)
		}
		for _, b := range bodies {
			shoal.Understand(b)
		}
	})
}

func FuzzProcessError_SplitCrash(f *testing.F) {
	f.Add("panic: boom\n\ngoroutine 1 [running]:\npanic({0x1, 0x2})\n\t/go/panic.go:1\nmain.main()\n\t/main.go:3 "+
		"+0x1\nexit status 2", "")
	f.Add("goroutine 1 [running]:\nruntime.throw()\n\t/x.go:1\nmain.main()\n\t/main.go:3", "fatal error: x")
	f.Fuzz(func(t *testing.T, text, fatal string) {
		reason, stack := shoal.SplitCrash(text, fatal)
		if strings.Contains(reason, "\n") && reason != fatal || len(stack) > len(text) {
			t.Fatalf("reason %q, stack %q", reason, stack)
		}
	})
}

// FuzzWorkerEnv reads marks of any program: they are those of a worker of this version, which it
// writes again, or errors.
func FuzzWorkerEnv(f *testing.F) {
	for _, s := range []string{"4 1 1 0 false", "4 2 8 5000000000 true", "5 new", "3 1 1 1", "", "x", "4 -1 1 1 true"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		again, err := shoal.ReadMark(s)
		if err != nil {
			return
		}
		if second, err := shoal.ReadMark(again); err != nil || second != again {
			t.Fatalf("%q is %q, and that %q, %v", s, again, second, err)
		}
	})
}
