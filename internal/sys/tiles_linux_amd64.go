package sys

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// AllowTiles asks for the registers of the processor's matrix unit, AMX, for all threads of this
// process, now and later. They make the frames of signals some 8 KiB larger.
func AllowTiles() error {
	const request, tileData = 0x1023, 18 // ARCH_REQ_XCOMP_PERM, and what it is for
	if _, _, e := unix.Syscall(unix.SYS_ARCH_PRCTL, request, tileData, 0); e != 0 {
		return fmt.Errorf("ask for the registers of the matrix unit: %w", missing("arch_prctl", e))
	}
	return nil
}
