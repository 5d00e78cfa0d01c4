package torch

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// Drain waits until all messages that have begun are written, and until other processes have
// fetched the memory of all tensors that this process has sent, or until ctx is done. The error
// then wraps ErrUnfetched and the cause of ctx's end, and says what is lost if this process ends. A
// program that has sent tensors without an answer calls Drain before it ends, with a limit. A Child
// does so by itself. Memory that goes by FileSystem needs no waiting: Drain leaves the names to
// their receivers.
//
// Drain does not wait for messages that ended processes have left to this one and that nobody has
// received.
func Drain(ctx context.Context) error {
	for pause := time.Millisecond; ; pause = min(2*pause, tidyFirst) {
		left := unfetched()
		if left == "" {
			return Trim()
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("%w: %s: %w", ErrUnfetched, left, context.Cause(ctx))
		}
	}
}

// unfetched says what is under way. It returns "" if nothing is.
func unfetched() string {
	var parts []string
	files, bytes := promised()
	if files > 0 {
		parts = append(parts, fmt.Sprintf("%d descriptors, of %d bytes", files, bytes))
	}
	if n := unwritten.Load(); n > 0 {
		parts = append(parts, fmt.Sprintf("%d messages, for which their readers have no room", n))
	}
	regions.mu.Lock()
	defer regions.mu.Unlock()
	regions.look()
	for _, r := range regions.byID {
		if regions.underWay(r) {
			parts = append(parts, fmt.Sprintf("memory of %d bytes for process %d", r.nbytes, r.peers[0].pid))
		}
	}
	return strings.Join(parts, ", ")
}

// promised counts the descriptors that this process has promised, and the bytes in their files.
func promised() (files int, bytes int64) {
	sharers.Lock()
	defer sharers.Unlock()
	for _, s := range sharers.byKey {
		s.mu.Lock()
		files += s.giving + len(s.waiting)
		for _, w := range s.waiting {
			if _, size, err := sys.Identify(w.file); err == nil {
				bytes += size
			}
		}
		s.mu.Unlock()
	}
	return files, bytes
}

// finish ends the sending of a Go process before the process ends.
func (c Child) finish(ctx context.Context) error {
	limit := c.Linger
	if limit == 0 {
		limit = linger
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%v after the function has returned", limit))
	defer cancel()
	err := Drain(ctx)
	regions.abandon()
	if err != nil {
		return fmt.Errorf("lost at the end of the process: %w", err)
	}
	return nil
}

// abandonedAt is the place in the header of a named file for the time when the file's maker ended,
// on the clock that all processes of the machine share. Somebody may set the clock of the day.
const abandonedAt = 8

// abandon gives up this process's part of the names' counts. The part of the messages stays for
// their receivers, for keepFor.
func (t *regionTable) abandon() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.byID {
		if !r.ours || r.name == "" {
			continue
		}
		Guard(func() {
			binary.NativeEndian.PutUint64(r.mem[abandonedAt:], uint64(sys.Monotonic()))
			r.drop()
		})
	}
}

// leftToOthers reports whether a named file was left to the receivers of messages, not long ago.
func leftToOthers(name string) bool {
	f, err := openNamed(name)
	if err != nil {
		return false
	}
	defer f.Close()
	var b [8]byte
	if _, err := f.ReadAt(b[:], abandonedAt); err != nil {
		return false
	}
	at := time.Duration(binary.NativeEndian.Uint64(b[:]))
	return at != 0 && sys.Monotonic()-at < keepFor
}
