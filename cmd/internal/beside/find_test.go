package beside_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/cmd/internal/beside"
)

func TestAProgramThatIsNowhereAndCannotBeBuiltSaysWhereItIsToBeHad(t *testing.T) {
	t.Setenv("PATH", "")
	_, err := beside.Command(t.Context(), "shoal-accel")
	if !errors.Is(err, beside.ErrMissing) ||
		!strings.Contains(err.Error(), "go install github.com/shoal-mp/shoal/cmd/shoal-accel@latest") {
		t.Errorf("%v", err)
	}
}
