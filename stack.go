package shoal

import "strings"

// splitCrash splits text, the crash output of the runtime, into the reason, the first line of
// the part before the first empty line, and the stacks of the goroutines without the runtime's
// topmost frames. For a fatal error the crash output contains only the goroutines; the reason is
// in fatal, from stderr, which may be empty.
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

// repanicked is the runtime's mark of a panic that passed through [goexit.Call].
const repanicked = " [recovered, repanicked]"

// userFrames returns the stack without the topmost frames that belong to the runtime and to the
// panic itself, so that the first frame is the user's code.
//
// A frame consists of a line with the function and an indented line with the file.
func userFrames(stack string) string {
	rest := stack
	for rest != "" {
		function, after, _ := strings.Cut(rest, "\n")
		if !isRuntimeFrame(function) {
			return rest
		}
		_, rest, _ = strings.Cut(after, "\n")
	}
	return stack // there are no other frames
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

// panicStack returns the frames below the panic from stack, the result of debug.Stack called
// during recovery, starting with the user's code. It returns the whole stack if it contains no
// panic.
func panicStack(stack []byte) string {
	s := string(stack)
	if _, below, ok := strings.Cut(s, "\npanic("); ok {
		_, below, _ = strings.Cut(below, "\n") // skip the rest of the line and its file
		_, below, _ = strings.Cut(below, "\n")
		return userFrames(below)
	}
	return s
}
