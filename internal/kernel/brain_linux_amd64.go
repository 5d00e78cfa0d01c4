package kernel

import (
	"sync"

	"golang.org/x/sys/cpu"

	"github.com/shoal-mp/shoal/internal/sys"
)

// matrixUnit reports whether the processor has a matrix unit for BFloat16, and Linux lets this
// process have its registers, which it is asked for once.
var matrixUnit = sync.OnceValue(func() bool {
	return cpu.X86.HasAMXTile && cpu.X86.HasAMXBF16 && sys.AllowTiles() == nil
})
