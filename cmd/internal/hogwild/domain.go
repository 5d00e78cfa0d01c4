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

// open returns the domain of the current process. If the environment variable [leakVariable] is
// 1, it leaks a block in it.
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
