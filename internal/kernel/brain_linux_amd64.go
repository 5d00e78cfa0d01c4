package kernel

import (
	"sync"

	"golang.org/x/sys/cpu"

	"github.com/shoal-mp/shoal/internal/sys"
)

// matrixUnit reports whether the processor has a matrix unit for BFloat16 (AMX) and Linux permits
// this process to use its registers. Linux requires a request for that, which is made once:
// https://docs.kernel.org/arch/x86/xstate.html.
var matrixUnit = sync.OnceValue(func() bool {
	return cpu.X86.HasAMXTile && cpu.X86.HasAMXBF16 && sys.AllowTiles() == nil
})
