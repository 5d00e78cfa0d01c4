package encoding_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/encoding/safetensors"
)

// The error for a damaged file names the file and the offset of the fault.
func ExampleFileError() {
	dir, err := os.MkdirTemp("", "encoding")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "model.safetensors")
	if err := os.WriteFile(path, []byte("\x02\x00\x00\x00\x00\x00\x00\x00[]"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	_, err = safetensors.Open(path)
	if file, ok := errors.AsType[*encoding.FileError](err); ok {
		fmt.Println(filepath.Base(file.Path), errors.Is(err, safetensors.ErrHeader))
	}
	// Output: model.safetensors true
}
