package shm_test

import (
	"errors"
	"testing"

	"github.com/shoal-mp/shoal/internal/shm"
)

func TestDomain_TooLittleAddressSpaceIsAnError(t *testing.T) {
	d, err := shm.New(shm.Options{Budget: 1 << 60, Reserve: 1 << 60})
	if !errors.Is(err, shm.ErrAddressSpace) {
		if d != nil {
			d.Close()
		}
		t.Errorf("a domain of 2^60 bytes: %v", err)
	}
}
