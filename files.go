package shoal

import (
	"context"
	"fmt"
	"io/fs"
	"os"
)

type filesKey struct{}

// File returns number i of the Options.Files of a process. ctx is the context of the process's
// function. The file is the process's own, another descriptor of the same open file, under the name
// that it had. It is closed when the function has returned. A process that is started again gets a
// new one. The error wraps fs.ErrNotExist if there is no such file.
func File(ctx context.Context, i int) (*os.File, error) {
	files, _ := ctx.Value(filesKey{}).([]*os.File)
	if i < 0 || i >= len(files) {
		return nil, fmt.Errorf("shoal: number %d of Options.Files, of which this process was given %d: %w", i,
			len(files), fs.ErrNotExist)
	}
	return files[i], nil
}
