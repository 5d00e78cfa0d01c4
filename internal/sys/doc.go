// Package sys is the only door to the operating system's own calls: sealed memory files, locks and
// handles that prove the death of a process, doorbells, descriptors sent over a socket, and what
// the machine and its control groups allow.
//
// Each function is one idea, and a thin one. It retries interrupted calls, keeps descriptors out of
// other programs (everything is close-on-exec), never changes the blocking mode of a file, and says
// in its error what it was doing. Policy lives above, in shm and shoal.
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
// There is one trap: mapped memory that was not committed is writable as well. If the kernel cannot
// back a write, it answers with a signal, not an error. [Commit] a range before any code touches
// it. A control group's limit is not an error of Commit either: the kernel kills. [MemoryLimit]
// tells the limit beforehand.
//
// Linux 5.10 is the oldest kernel that works. Elsewhere the package compiles and every call returns
// an error that wraps [errors.ErrUnsupported].
package sys
