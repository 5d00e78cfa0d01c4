package hogwild

import (
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/encoding/safetensors"
	"github.com/shoal-mp/shoal/nn"
)

// save writes the network to path. If that does not work, it goes to a new file among the temporary
// ones, so that no hour of training is lost to a wrong path; the error says where. It returns the
// file that was written.
func save(net *Net, path string, note map[string]string) (file string, err error) {
	err = safetensors.Save(path, nn.State(net), note)
	if err == nil {
		return path, nil
	}
	spare, other := spareFile()
	if other == nil {
		other = safetensors.Save(spare, nn.State(net), note)
	}
	if other != nil {
		return "", fmt.Errorf("%w: %w; and no other place either: %w", ErrSave, err, other)
	}
	return spare, fmt.Errorf("%w: %w; it is in %s: move it from there", ErrSave, err, spare)
}

// spareFile makes an empty file whose name nobody has.
func spareFile() (string, error) {
	f, err := os.CreateTemp("", "hogwild-*.safetensors")
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}
