//go:build cudasim

package cuda

import _ "github.com/shoal-mp/shoal/internal/cuda/sim" // registers the simulated driver
