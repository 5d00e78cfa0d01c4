package shoal

import "strings"

// splitCrash separates the parts of what the runtime writes when it gives up: the reason, up to the
// first empty line, and the goroutines. For a fatal error it writes only the goroutines here, and
// the reason on stderr.
func splitCrash(text, fatal string) (reason, stack string) {
	stack = strings.TrimSpace(text)
	if !strings.HasPrefix(stack, "goroutine ") {
		reason, stack, _ = strings.Cut(stack, "\n\n")
		reason, _, _ = strings.Cut(reason, "\n")
		reason = strings.TrimSuffix(reason, repanicked)
	} else if reason = fatal; reason == "" {
		reason = "fatal error of the runtime"
	}
	goroutine, frames, ok := strings.Cut(stack, "\n")
	if !ok {
		return reason, stack
	}
	return reason, goroutine + "\n" + userFrames(frames)
}

// repanicked is how the runtime marks a panic that went through [goexit.Call].
const repanicked = " [recovered, repanicked]"

// userFrames drops the frames at the top of a stack that belong to the runtime and to the panic
// itself, so that the first frame is where the user's code was.
//
// A frame is a line with the function and an indented line with the file.
func userFrames(stack string) string {
	rest := stack
	for rest != "" {
		function, after, _ := strings.Cut(rest, "\n")
		if !isRuntimeFrame(function) {
			return rest
		}
		_, rest, _ = strings.Cut(after, "\n")
	}
	return stack // nothing else was there
}

func isRuntimeFrame(function string) bool {
	for _, prefix := range []string{"panic(", "runtime.", "internal/runtime/", "runtime/debug.",
		"github.com/shoal-mp/shoal/internal/goexit."} {
		if strings.HasPrefix(function, prefix) {
			return true
		}
	}
	return false
}

// panicStack cuts debug.Stack, called while recovering, to the frames below the panic.
func panicStack(stack []byte) string {
	s := string(stack)
	if _, below, ok := strings.Cut(s, "\npanic("); ok {
		_, below, _ = strings.Cut(below, "\n") // the rest of the line, then its file
		_, below, _ = strings.Cut(below, "\n")
		return userFrames(below)
	}
	return s
}
