package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/torch"
)

// A user of Python who misspells an option is told its name and those that there are.
func TestAnUnknownOptionIsNamedWithThoseThatThereAre(t *testing.T) {
	for name, has := range map[string]string{
		"images": "root, transform, resize, crop", "npy": "paths", "jsonl": "paths, columns, pad",
		"parquet": "paths, columns, pad, cache, spill", "tokens": "path, length, stride",
		"service": "hosts, key, patience",
	} {
		_, err := sets[name](t.Context(), torch.Worker{Args: python.NewDict("cropp", int64(3))})
		if !errors.Is(err, errOption) || !strings.Contains(err.Error(), "cropp") ||
			!strings.Contains(err.Error(), has) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, err := range openShards(t.Context(), torch.Worker{Args: python.NewDict("root", "x")}) {
		if !errors.Is(err, errOption) || !strings.Contains(err.Error(),
			"paths, rank, world, shuffle, seed, epoch, equal, transform") {
			t.Errorf("shards: %v", err)
		}
	}
}
