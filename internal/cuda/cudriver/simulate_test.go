package cudriver_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
)

// This test's program has no simulator.
func TestOpen_WithoutASimulatorNamesTheRemedy(t *testing.T) {
	t.Setenv(cudriver.SimulateKey, "/dev/null")
	d, err := cudriver.Open()
	if d != nil || !errors.Is(err, cudriver.ErrNoSimulator) || !strings.Contains(err.Error(), "-tags cudasim") {
		t.Errorf("%v, %v", d, err)
	}
}
