package shoal_test

import (
	"os"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/shoaltest"
)

// TestMain also serves as the main function of the programs that main_test and lifeline_test run.
func TestMain(m *testing.M) {
	if p, ok := programs[os.Getenv(programKey)]; ok && !shoal.IsWorker() {
		p()
	}
	shoaltest.TestMain(m)
}

// watchdog is far beyond what anything here takes, so that a hang becomes a failure with a place.
const watchdog = 60 * time.Second
