package torch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestQueue_GetLosesNothing takes messages with descriptors from a Python that is stopped. A Get
// whose context ends in the middle of a message returns the message when Python goes on. One whose
// context ended before, on a busy machine, leaves it to the next Get.
func TestQueue_GetLosesNothing(t *testing.T) {
	eachPython(t, func(t *testing.T, py peerPython) {
		k, b := equip(t, py)
		k.ask("eval", "[q.put(multiprocessing.reduction.DupFd(os.open(f'/proc/self/{n}', os.O_RDONLY)))"+
			" for q in (queue, simple) for n in ('comm', 'stat')] and (queue.close(), queue.join_thread())")
		for i, q := range []Queue{b.queue, b.queue, b.simple, b.simple} {
			if err := k.p.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(300*time.Millisecond, func() { k.p.Signal(syscall.SIGCONT) })
			ctx, cancel := context.WithTimeout(k.ctx, 20*time.Millisecond)
			f, err := As[*os.File](q.Get(ctx))
			cancel()
			if errors.Is(err, context.DeadlineExceeded) {
				f, err = As[*os.File](q.Get(k.ctx))
			}
			if err != nil {
				t.Errorf("message %d: %v", i, err)
				continue
			}
			path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
			if want := []string{"comm", "stat"}[i%2]; err != nil || filepath.Base(path) != want {
				t.Errorf("message %d is %s, and not %s: %v", i, path, want, err)
			}
			f.Close()
		}
		k.bye()
	})
}
