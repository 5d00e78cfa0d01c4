//go:build cudasim

package cuda

import _ "github.com/shoal-mp/shoal/internal/cuda/sim" // the driver of simulated devices
