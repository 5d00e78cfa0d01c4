package pickle_test

import (
	"testing"

	"github.com/shoal-mp/shoal/shoaltest"
)

func TestMain(m *testing.M) { shoaltest.TestMain(m) }
