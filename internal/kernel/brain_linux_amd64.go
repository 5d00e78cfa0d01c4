package kernel

import (
	"sync"

	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"
)

// matrixUnit reports whether the processor has a matrix unit for BFloat16, and Linux lets this
// process have its registers, which it is asked for once: they make the frames of signals larger.
var matrixUnit = sync.OnceValue(func() bool {
	const request, tileData = 0x1023, 18 // ARCH_REQ_XCOMP_PERM, and what it is for
	if !cpu.X86.HasAMXTile || !cpu.X86.HasAMXBF16 {
		return false
	}
	_, _, e := unix.Syscall(unix.SYS_ARCH_PRCTL, request, tileData, 0)
	return e == 0
})
