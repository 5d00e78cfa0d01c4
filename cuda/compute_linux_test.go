package cuda_test

import (
	"testing"

	"github.com/shoal-mp/shoal/internal/devicetest"
)

func TestTheDeviceComputesWhatTheHostDoes(t *testing.T) {
	simulate(t, 1, 64*mib)
	devicetest.Conform(t, device(t, "cuda"))
}
