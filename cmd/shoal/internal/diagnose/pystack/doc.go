// Package pystack reads the Python stacks of another process from its memory, without stopping it.
//
//	stacks, err := pystack.Read(procfs.Machine, process)
//
// It supports CPython 3.9 to 3.14 on 64-bit little-endian machines. The process must belong to the
// same user, and the kernel must permit ptrace(2), because /proc/PID/mem requires that permission.
// The process runs on meanwhile, so a stack may be inconsistent. Every pointer is checked by
// reading through it, and every length is limited, so the worst result is a wrong frame or an
// error. The caller should read a stack twice before it concludes that a thread makes no progress.
package pystack
