package torch

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/torch/internal/reader"
	"github.com/shoal-mp/shoal/torch/internal/vision"
)

// Note [Whose data set it is] When a DataLoader worker process starts, Go can still hand it over to
// Python. The decision must be made by the pickle alone, before anything in it is used. There are
// three cases. A data set that names a registered Go data set is loaded by Go; if Go cannot read
// the rest of its pickle, the script gets an error, because Python has no samples for it. A class
// of the script's own that wraps such a data set is loaded by Python, because the script wants its
// __getitem__. A class that Go supports could be loaded by Python too; if Go would produce other
// samples, because it does not support a transform, Python loads them, and one line on stderr gives
// the reason.

// loadsSamples reports whether Go loads the samples of a worker with the given arguments, which
// are as they are in the pickle. If it returns false, Python loads them. If Go supports the
// class but not its options, the first worker prints the reason on stderr.
func (c Child) loadsSamples(args python.Tuple) bool {
	if len(args) <= argDataset {
		return false
	}
	set := args[argDataset]
	err := c.checkKnown(set, map[any]bool{})
	if errors.Is(err, errNotOurs) {
		return false
	}
	if err != nil && mentionsGoDataset(set) {
		return true
	}
	if err != nil {
		printReasonOnce(args, strings.TrimPrefix(err.Error(), ErrUnsupported.Error()+": "))
	}
	return err == nil
}

// printReasonOnce prints on stderr why Python loads the samples. args are the arguments of the
// worker; only the first worker, number 0, prints.
func printReasonOnce(args python.Tuple, why string) {
	if len(args) > argWorker && args[argWorker] == int64(0) {
		fmt.Fprintln(os.Stderr, "Python instead of Go loads the samples:", why)
	}
}

// mentionsRegistered reports whether a registered data set occurs anywhere in a pickle, by its name
// or its class. Python has no samples for it.
func (c Child) mentionsRegistered(set any) bool {
	for o := range pickle.Each[*pickle.Object](set) {
		if name := o.Class.String(); c.Datasets[name] != nil || c.valueStream(name) != nil {
			return true
		}
	}
	return mentionsGoDataset(set)
}

// mentionsGoDataset reports whether a data set with the attribute shoal_dataset, other than
// None, occurs anywhere in a pickle.
func mentionsGoDataset(set any) bool {
	for d := range pickle.Each[*python.Dict](set) {
		if name, ok := d.Get(datasetName); ok && name != nil {
			return true
		}
	}
	return false
}

// errNotOurs is returned by checkKnown for a class that Go does not support.
var errNotOurs = errors.New("torch: data set class is not supported by Go")

// checkKnown returns nil if Go can load the samples of an object, errNotOurs if it does not
// support the class, and otherwise an error with the reason. seen holds the objects that were
// checked before, so that cycles end.
func (c Child) checkKnown(v any, seen map[any]bool) error {
	if list, ok := v.(*pickle.List); ok && len(list.Items) == 1 { // PyTorch 2.14 and later pass it in a list
		v = list.Items[0]
	}
	o, ok := v.(*pickle.Object)
	if !ok {
		return errNotOurs
	}
	if seen[o] {
		return nil
	}
	seen[o] = true
	state, _ := o.State.(*python.Dict)
	named, left := state.Get(datasetName)
	switch name := o.Class.String(); {
	case named != nil:
		return nil
	case left:
		return errNotOurs
	case c.Datasets[name] != nil || c.valueStream(name) != nil:
		return nil
	case vision.Known(o.Class):
		return vision.Check(o)
	case isRead(o.Class):
		r, _ := reader.Find(o.Class)
		return r.Check(o)
	case o.Class == huggingFace:
		return unsupported("datasets.Dataset needs a package that this program does not import: import " +
			"github.com/shoal-mp/shoal/torch/huggingface")
	case o.Class == huggingFaceStream:
		return unsupported("Go does not read a streaming datasets.IterableDataset: load the data set without " +
			"streaming=True, " +
			"or keep the Python workers")
	case o.Class == chainDataset || knownOpener(o.Class) != nil:
		return c.checkKnownParts(state, seen)
	}
	return errNotOurs
}

// huggingFace is the class that package torch/huggingface reads.
var huggingFace = named("datasets.arrow_dataset.Dataset")

// huggingFaceStream is the class of streaming data sets of Hugging Face, which Python loads.
var huggingFaceStream = named("datasets.iterable_dataset.IterableDataset")

// isRead reports whether the program imports a reader of the class.
func isRead(class python.Global) bool {
	_, ok := reader.Find(class)
	return ok
}

// checkKnownParts applies checkKnown to the data sets within another one, and returns the first
// error. state is the pickled state of the outer data set.
func (c Child) checkKnownParts(state *python.Dict, seen map[any]bool) error {
	if inner, ok := state.Get("dataset"); ok {
		return c.checkKnown(inner, seen)
	}
	v, _ := state.Get("datasets")
	parts, _ := v.(python.Tuple)
	switch v := v.(type) {
	case *pickle.List:
		parts = v.Items
	case *python.Dict:
		for _, part := range v.All() {
			parts = append(parts, part)
		}
	}
	for _, part := range parts {
		if err := c.checkKnown(part, seen); err != nil {
			return err
		}
	}
	return nil
}

// targetNames returns function names, without their modules. At least one of them occurs in the
// pickle of a process that Go serves.
func (c Child) targetNames() []string {
	all := []string{dataLoaderWorker[strings.LastIndexByte(dataLoaderWorker, '.')+1:]}
	for name := range c.Functions {
		all = append(all, name[strings.LastIndexByte(name, '.')+1:])
	}
	return all
}

// identifyingNames returns names, most of them of data sets. At least one of them occurs in the
// pickle of a process that Go serves, besides one of targetNames.
func (c Child) identifyingNames() []string {
	all := []string{datasetName, "torch.utils.data.dataset", vision.Module, huggingFace.Module,
		huggingFaceStream.Module}
	names := func(name string) { all = append(all, name[strings.LastIndexByte(name, '.')+1:]) }
	for name := range c.Functions {
		names(name)
	}
	for name := range c.Datasets {
		names(name)
	}
	for name := range c.allStreams() {
		names(name)
	}
	return all
}
