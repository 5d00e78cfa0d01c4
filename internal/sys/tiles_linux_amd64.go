package sys

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// AllowTiles requests the registers of the processor's matrix unit, AMX, for all present and future
// threads of this process: https://docs.kernel.org/arch/x86/xstate.html. They make signal frames
// about 8 KiB larger. It returns an error that wraps a [*MissingCallError] if the kernel has no
// such request or a filter refuses it.
func AllowTiles() error {
	const request, tileData = 0x1023, 18 // ARCH_REQ_XCOMP_PERM and its argument
	if _, _, e := unix.Syscall(unix.SYS_ARCH_PRCTL, request, tileData, 0); e != 0 {
		return fmt.Errorf("request permission for the AMX tile registers: %w", wrapMissingCall("arch_prctl", e))
	}
	return nil
}
