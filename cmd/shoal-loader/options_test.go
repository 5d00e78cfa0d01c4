package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/torch"
)

// The options of serve are a JSON object.
func TestOptionsThatAreNoObjectAreOptionErrors(t *testing.T) {
	for _, text := range []string{`{"root": `, `[]`, `{} {}`} {
		if _, err := openSet(t.Context(), "images", text); !errors.Is(err, errOption) {
			t.Errorf("openSet with %s: %v, want an option error", text, err)
		}
		if _, err := (settings{}).streamLoader(text); !errors.Is(err, errOption) {
			t.Errorf("streamLoader with %s: %v, want an option error", text, err)
		}
	}
}

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

// The error for an option of the wrong type must name the option and the wanted type in Python.
func TestAnOptionOfAnotherTypeNamesTheWantedOne(t *testing.T) {
	for _, c := range []struct {
		set, option string
		value       any
		want        string
	}{
		{"images", "flip", true, "option flip: got true, want a number"},
		{"images", "mean", 0.5, "option mean: got 0.5, want a list of numbers"},
		{"images", "root", int64(3), "option root: got 3, want a str"},
		{"images", "std", []any{0.5, int64(0), 0.5}, "option std: got [0.5 0 0.5], want numbers other than 0"},
		{"parquet", "cache", "big", "option cache: got big, want an int"},
		{"images", "dtype", "float33", "option dtype: "},
		{"images", "dtype", int64(3), "option dtype: got int64, want a dtype"},
		{"parquet", "columns", python.NewDict("a", "float33"), `column "a": option dtype: `},
	} {
		args := python.NewDict("paths", "x")
		if c.set == "images" {
			args = python.NewDict("root", t.TempDir())
		}
		args.Set(c.option, c.value)
		_, err := sets[c.set](t.Context(), torch.Worker{Args: args})
		if !errors.Is(err, errOption) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %s=%v: got %v, want %q", c.set, c.option, c.value, err, c.want)
		}
	}
}
