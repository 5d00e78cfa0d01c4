package hogwild

import (
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/encoding/safetensors"
	"github.com/shoal-mp/shoal/nn"
)

// save writes the network to path, with note as metadata, and returns the name of the file
// written. If path cannot be written, it writes to a temporary file instead, so that the
// training is not lost; the error then names that file and wraps [ErrSave]. If that fails, too,
// file is empty.
func save(net *Net, path string, note map[string]string) (file string, err error) {
	err = safetensors.SaveWith(path, nn.State(net), safetensors.SaveOptions{Metadata: note})
	if err == nil {
		return path, nil
	}
	spare, other := createTempFile()
	if other == nil {
		other = safetensors.SaveWith(spare, nn.State(net), safetensors.SaveOptions{Metadata: note})
	}
	if other != nil {
		return "", fmt.Errorf("%w: %w; saving it to a temporary file failed too: %w", ErrSave, err, other)
	}
	return spare, fmt.Errorf("%w: %w; it was saved to %s instead: move it from there", ErrSave, err, spare)
}

// createTempFile creates an empty temporary file and returns its name, which is unique.
func createTempFile() (string, error) {
	f, err := os.CreateTemp("", "hogwild-*.safetensors")
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}
