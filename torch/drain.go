package torch

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// Drain blocks until all partly written messages are complete and other processes have fetched the
// memory of all tensors that this process sent. If ctx is done first, the error wraps
// [ErrUnfetched] and [context.Cause], and lists the tensors that are lost if this process ends. A
// program should call Drain, with a deadline, before it ends if it sent tensors without waiting for
// an answer; a [Child] does so itself. Drain does not wait for memory sent by [FileSystem], because
// its names remain for the receivers.
//
// Drain also does not wait for messages that an ended process handed over to this one and that are
// not received yet.
func Drain(ctx context.Context) error {
	for pause := time.Millisecond; ; pause = min(2*pause, tidyFirst) {
		left := describeInFlight()
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

// describeInFlight describes, for an error, the memory and the messages that other processes
// have not received yet. It returns "" if there are none.
func describeInFlight() string {
	var parts []string
	files, bytes := inFlightDescriptors()
	if files > 0 {
		parts = append(parts, fmt.Sprintf("%d descriptors with %d bytes", files, bytes))
	}
	if n := unwritten.Load(); n > 0 {
		parts = append(parts, fmt.Sprintf("%d messages not yet written, because their readers are full", n))
	}
	regions.mu.Lock()
	defer regions.mu.Unlock()
	regions.countOpenings()
	for _, r := range regions.byID {
		if regions.isInFlight(r) {
			parts = append(parts, fmt.Sprintf("memory of %d bytes sent to process %d", r.nbytes, r.peers[0].pid))
		}
	}
	return strings.Join(parts, ", ")
}

// inFlightDescriptors returns the number of descriptors that wait in this process's resource
// sharers or are being sent, and the total size in bytes of the files of those that wait.
func inFlightDescriptors() (files int, bytes int64) {
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

// drainMessages blocks until the messages of a process that Go served have been received, at
// most for [Child.Linger], and then drops the references to its named files. The process must
// end after it. The error wraps [ErrUnfetched] if data is lost.
func (c Child) drainMessages(ctx context.Context) error {
	limit := c.Linger
	if limit == 0 {
		limit = linger
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit,
		fmt.Errorf("not received within %v after the function returned", limit))
	defer cancel()
	err := Drain(ctx)
	regions.dropReferences()
	if err != nil {
		return fmt.Errorf("data lost at process exit: %w", err)
	}
	return nil
}

// abandonedAt is the offset in the header of a named file at which its creator stores the time when
// it ended. The time is of the monotonic clock, which all processes of the machine share; the wall
// clock may be set.
const abandonedAt = 8

// dropReferences drops this process's own references to its named files. The references of
// messages remain for keepFor, 10 minutes, so that their receivers can open the files. The
// process must end after it.
func (t *regionTable) dropReferences() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.byID {
		if !r.ours || r.name == "" {
			continue
		}
		Guard(func() {
			binary.NativeEndian.PutUint64(r.mem[abandonedAt:], uint64(sys.Monotonic()))
			r.dropReference()
		})
	}
}

// isLeftToReceivers reports whether a named file was left to the receivers of messages less than
// keepFor, 10 minutes, ago. It returns false if the file cannot be read.
func isLeftToReceivers(name string) bool {
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
