package torch

import (
	"errors"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/pickle"
)

// A program without package torch/huggingface leaves its data sets to Python, and says how to read
// them.
func TestChild_NamesTheImportThatReadsHuggingFace(t *testing.T) {
	err := Child{}.checkKnown(&pickle.Object{Class: huggingFace}, map[any]bool{})
	if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "github.com/shoal-mp/shoal/torch/huggingface") {
		t.Errorf("got %v, want ErrUnsupported with the path of the package", err)
	}
}
