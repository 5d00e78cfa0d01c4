package shoal

import (
	"context"
	"fmt"
	"io/fs"
	"os"
)

type filesKey struct{}

// File returns file i of [Options].Files. ctx must be the context passed to the process's function,
// or derived from it. The file is a separate descriptor of the same open file, with its original
// name. All calls return the same [*os.File], which is closed when the function has returned. A
// restarted process gets a new descriptor. The error wraps [fs.ErrNotExist] if there is no such
// file, or if ctx is another context.
func File(ctx context.Context, i int) (*os.File, error) {
	files, _ := ctx.Value(filesKey{}).([]*os.File)
	if i < 0 || i >= len(files) {
		return nil, fmt.Errorf("shoal: Options.Files index %d out of range, this process has %d files: %w", i,
			len(files), fs.ErrNotExist)
	}
	return files[i], nil
}
