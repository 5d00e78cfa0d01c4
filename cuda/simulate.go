//go:build cudasim

package cuda

import _ "github.com/shoal-mp/shoal/internal/cudriver/sim" // the driver of simulated devices
