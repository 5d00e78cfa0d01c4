package datasets_test

import (
	"testing"

	"github.com/shoal-mp/shoal"
)

func TestMain(m *testing.M) { shoal.TestMain(m) }
