package hogwild

import (
	"os"

	"github.com/shoal-mp/shoal/internal/arena"
)

// leakVariable makes the root process leak one block on purpose, to demonstrate that leaks are
// detected and reported.
const (
	leakVariable = "SHOAL_TEST_LEAK"
	leakBytes    = 64 << 10
)

// open returns the domain of the current process.
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
