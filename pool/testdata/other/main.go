// Other is another program with a function of the same name: its workers are those of a pool that is told so.
package main

import (
	"context"
	"errors"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/pool"
)

var _ = pool.Register("square", func(_ context.Context, x int) (int, error) { return -x * x, nil })

func main() {
	shoal.Main(func(context.Context) error { return errors.New("only its workers are of use") })
}
