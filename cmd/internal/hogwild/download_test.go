package hogwild_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/cmd/internal/hogwild"
)

func TestADownloadWithoutTheDownloaderSaysWhereItIsToBeHad(t *testing.T) {
	t.Setenv("PATH", "")
	o := original()
	o.Data, o.Download, o.Stdout, o.Stderr = t.TempDir(), true, io.Discard, io.Discard
	err := hogwild.Run(t.Context(), o)
	if !errors.Is(err, hogwild.ErrDownload) ||
		!strings.Contains(err.Error(), "go install github.com/shoal-mp/shoal/cmd/shoal-download@latest") {
		t.Errorf("%v", err)
	}
}
