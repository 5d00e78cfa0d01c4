package cuda_test

import (
	"runtime"
	"testing"

	"github.com/shoal-mp/shoal/internal/devicetest"
	"github.com/shoal-mp/shoal/shm"
)

// collected waits until the garbage collector has taken all tensors, and only blocks of segments are left.
func collected(t *testing.T, segments int) {
	t.Helper()
	eventually(t, func() string {
		runtime.GC()
		if shm.Current().Stats().Blocks <= segments {
			return "collected"
		}
		return "tensors are left"
	}, "collected")
}

func TestTheDeviceComputesWhatTheHostDoes(t *testing.T) {
	simulate(t, 1, 64*mib)
	devicetest.Conform(t, device(t, "cuda"))
	collected(t, 1)
}
