package hogwild

import (
	"os"

	"github.com/shoal-mp/shoal/internal/arena"
)

// leakVariable makes the root forget one block on purpose, so that anybody can see that a leak is
// found and told.
const (
	leakVariable = "SHOAL_TEST_LEAK"
	leakBytes    = 64 << 10
)

// open returns the domain of this process.
func open() (*arena.Domain, error) {
	d, err := arena.Default()
	if err != nil {
		return nil, err
	}
	if os.Getenv(leakVariable) == "1" {
		_, err = d.Alloc(leakBytes)
	}
	return d, err
}
