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

// Note [Whose data set it is] A worker of a DataLoader is a process of its own that has not begun:
// Go may still hand it over to Python. So the pickle alone decides whether Go makes the samples,
// before Go uses anything in it. There are three cases. A data set that names one of Go's is Go's.
// If Go cannot read the rest of its pickle, the script gets an error, because Python has no samples
// for it. A class of the script's own around such a data set is Python's, because the script wants
// its __getitem__. For a class that Go knows Python could make the samples as well. If Go would
// make other samples, because of a transform that it does not know, Python makes them, and one line
// on stderr says why.

// loads reports whether Go makes the samples of a worker of a DataLoader, by its arguments as they
// are in the pickle.
func (c Child) loads(args python.Tuple) bool {
	if len(args) <= argDataset {
		return false
	}
	set := args[argDataset]
	err := c.knows(set, map[any]bool{})
	if errors.Is(err, errNotOurs) {
		return false
	}
	if err != nil && namesGo(set) {
		return true
	}
	if err != nil {
		tellOnce(args, strings.TrimPrefix(err.Error(), ErrUnsupported.Error()+": "))
	}
	return err == nil
}

// tellOnce prints why Go does not make the samples, in the first worker.
func tellOnce(args python.Tuple, why string) {
	if len(args) > argWorker && args[argWorker] == int64(0) {
		fmt.Fprintln(os.Stderr, "Python loads the samples, and not Go:", why)
	}
}

// names reports whether a data set that the program has registered is anywhere in a pickle, by its
// name or by that of its class. Python does not have its samples.
func (c Child) names(set any) bool {
	for o := range pickle.Each[*pickle.Object](set) {
		if name := o.Class.String(); c.Datasets[name] != nil || c.valueStream(name) != nil {
			return true
		}
	}
	return namesGo(set)
}

// namesGo reports whether a data set of Go's is named anywhere in a pickle.
func namesGo(set any) bool {
	for d := range pickle.Each[*python.Dict](set) {
		if name, ok := d.Get(datasetName); ok && name != nil {
			return true
		}
	}
	return false
}

// errNotOurs is the error for a class that Go does not know.
var errNotOurs = errors.New("torch: a data set of Python's")

// knows returns nil if Go makes the samples of an object. It returns errNotOurs if Go does not know
// the class, and otherwise the reason.
func (c Child) knows(v any, seen map[any]bool) error {
	if list, ok := v.(*pickle.List); ok && len(list.Items) == 1 { // from PyTorch 2.14 on
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
		return unsupported("datasets.Dataset: this program does not import " +
			"github.com/shoal-mp/shoal/torch/huggingface, which reads it")
	case o.Class == chainDataset || known(o.Class) != nil:
		return c.knowsParts(state, seen)
	}
	return errNotOurs
}

// huggingFace is the class of the data sets that package torch/huggingface reads.
var huggingFace = named("datasets.arrow_dataset.Dataset")

// isRead reports whether the program has imported a reader of the class.
func isRead(class python.Global) bool {
	_, ok := reader.Find(class)
	return ok
}

// knowsParts asks about the data sets in another one.
func (c Child) knowsParts(state *python.Dict, seen map[any]bool) error {
	if inner, ok := state.Get("dataset"); ok {
		return c.knows(inner, seen)
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
		if err := c.knows(part, seen); err != nil {
			return err
		}
	}
	return nil
}

// targets are names of which the pickle of a Go process has one.
func (c Child) targets() []string {
	all := []string{dataLoaderWorker[strings.LastIndexByte(dataLoaderWorker, '.')+1:]}
	for name := range c.Functions {
		all = append(all, name[strings.LastIndexByte(name, '.')+1:])
	}
	return all
}

// words are further names of which it has one. Most of them say what a data set is.
func (c Child) words() []string {
	all := []string{datasetName, "torch.utils.data.dataset", vision.Module, huggingFace.Module}
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
