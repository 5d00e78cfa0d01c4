// Package sys is the only door to the operating system's own calls: sealed memory files, locks and
// handles that prove the death of a process, doorbells, descriptors sent over a socket, and what
// the machine and its control groups allow.
//
// Each function is one idea and a thin one: it retries interrupted calls, keeps descriptors out of
// other programs (everything is close-on-exec), never changes the blocking mode of a file, and says
// in its error what was being done. Policy lives above, in shm and shoal.
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
// The trap: mapped memory that was not committed is still writable, and the kernel's answer to a
// write that it cannot back is a signal, not an error. [Commit] a range before anybody touches it,
// and know that a control group's limit is not an error of Commit either: the kernel kills.
// [MemoryLimit] is how to ask beforehand.
//
// Linux 5.10 is the oldest kernel that works. Elsewhere the package compiles and every call returns
// an error that wraps [errors.ErrUnsupported].
package sys
