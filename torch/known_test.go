package torch

import (
	"errors"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
)

// A program without package torch/huggingface leaves its data sets to Python, and says how to read
// them.
func TestChild_NamesTheImportThatReadsHuggingFace(t *testing.T) {
	err := Child{}.checkKnown(&pickle.Object{Class: huggingFace}, map[any]bool{})
	if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(),
		"github.com/shoal-mp/shoal/torch/huggingface") {
		t.Errorf("got %v, want ErrUnsupported with the path of the package", err)
	}
}

// A stream of Hugging Face is left to Python with a reason.
func TestChild_NamesAStreamOfHuggingFace(t *testing.T) {
	set := &pickle.Object{Class: huggingFaceStream, State: python.NewDict("_split", nil)}
	err := Child{}.checkKnown(&pickle.List{Items: []any{set}}, map[any]bool{})
	if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "without streaming=True") {
		t.Errorf("got %v, want ErrUnsupported with the remedy", err)
	}
	if (Child{}).loadsSamples(python.Tuple{int64(kindStream), set}) {
		t.Error("Go loads the samples, want Python")
	}
}

// A worker_init_fn that only seeds Python's generators needs no Python, and any other does.
func TestChild_OmitsFunctionsThatSeed(t *testing.T) {
	lightning := named("lightning.fabric.utilities.seed.pl_worker_init_function")
	trainer := named("transformers.trainer_utils.seed_worker")
	own := named("__main__.seed_worker")
	partial := func(f any) *pickle.Object {
		return &pickle.Object{Class: partialClass, Args: python.Tuple{f}}
	}
	rebuilt := func(f any) *pickle.Object {
		return &pickle.Object{Class: rebuildPartial, Args: python.Tuple{f, python.Tuple{}, &python.Dict{}}}
	}
	for _, c := range []struct {
		init any
		want string
	}{
		{nil, ""}, {lightning, ""}, {partial(lightning), ""}, {partial(trainer), ""}, {rebuilt(lightning), ""},
		{&python.Record{Class: partialClass, Args: python.Tuple{trainer}}, ""},
		{own, "the worker_init_fn __main__.seed_worker"},
		{partial(own), "the worker_init_fn __main__.seed_worker"},
		{&python.Record{Class: rebuildPartial, Args: python.Tuple{trainer}}, ""},
		{rebuilt(own), "the worker_init_fn __main__.seed_worker"},
		{&pickle.Object{Class: named("__main__.Init")}, "the worker_init_fn __main__.Init"},
	} {
		args := make(python.Tuple, argState)
		args[argAutoCollate], args[argCollate], args[argInit] = true, named(defaultCollate), c.init
		if got := (Child{}).needsPython(args); got != c.want {
			t.Errorf("%v: %q, want %q", c.init, got, c.want)
		}
	}
}
