package hogwild

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal/data/download"
)

// download fetches the files of MNIST that the folder lacks.
func (o *Options) download(ctx context.Context) error {
	said := ""
	err := download.MNIST(ctx, o.Data, download.Mirror, func(name string, done, total int64) {
		if said != name {
			said = name
			fmt.Fprintf(o.Stderr, "%s: %s\n", name, size(total))
		}
	})
	if err != nil {
		return fmt.Errorf("download MNIST to %s: %w", o.Data, err)
	}
	return nil
}
