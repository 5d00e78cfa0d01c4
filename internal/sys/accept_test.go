package sys_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/internal/sys"
)

func TestAcceptGoesOnUntilItIsClosed(t *testing.T) {
	busy, closed := errors.New("no descriptor is free"), fmt.Errorf("accept: %w", os.ErrClosed)
	results := []error{busy, busy, nil, nil, busy, nil, closed, nil}
	n := 0
	var served []int
	sys.Accept(func() (int, error) { n++; return n - 1, results[n-1] }, func(c int) { served = append(served, c) })
	if !slices.Equal(served, []int{2, 3, 5}) || n != 7 {
		t.Errorf("served %v of %d", served, n)
	}
}
