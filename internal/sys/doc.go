// Package sys wraps the operating system calls that shoal needs: sealed memory files, locks and
// handles that prove the death of a process, doorbells, descriptors sent over a socket, and the
// limits of the machine and its control groups. No other package should make such calls itself.
//
// Each function is a thin wrapper of one call or idea. It retries interrupted calls, keeps
// descriptors out of other programs (everything is close-on-exec), never changes the blocking mode
// of a file unless its documentation says so, and names the operation in its error. Policy belongs
// to the callers.
//
//	f, err := sys.Memfd("arena")
//	if err != nil {
//		return err
//	}
//	defer f.Close()
//	if err := sys.Resize(f, 1<<30); err != nil { // sparse: costs no memory yet
//		return err
//	}
//	if err := sys.Seal(f); err != nil { // no peer can truncate it under us
//		return err
//	}
//	mem, err := sys.Map(f, 1<<30)
//
// Mapped memory that was not committed is writable as well, but if the kernel cannot back a write,
// it sends a signal instead of returning an error. So a range must be committed by [Commit] before
// any code touches it. Exceeding a control group's limit is not an error of Commit either: the
// kernel kills a process. [MemoryLimit] should be checked before.
//
// Linux 5.10 is the oldest kernel that works. On other systems the package compiles, and calls
// without an equivalent return an error that wraps [errors.ErrUnsupported].
package sys
