package torch

import (
	"strings"

	"github.com/shoal-mp/shoal/internal/pickle"
)

// words are such that what serves agrees to has one of them. Looking for them is quick, also in arguments of any length.
func (c Child) words() []string {
	all := append([]string{datasetName, chainDataset.Name}, recognisedNames()...)
	last := func(name string) { all = append(all, name[strings.LastIndexByte(name, '.')+1:]) }
	for name := range c.Functions {
		last(name)
	}
	for name := range c.Datasets {
		last(name)
	}
	for name := range c.Streams {
		last(name)
	}
	return all
}

// serves reports whether Go does what a process object says; all else is Python's.
func (c Child) serves(process any) bool {
	target, _ := rawAttribute(process, "_target")
	g, _ := target.(Global)
	if g.String() != dataLoaderWorker {
		return c.Functions[g.String()] != nil
	}
	v, _ := rawAttribute(process, "_args")
	args, _ := v.(Tuple)
	if len(args) <= argWorkers {
		return false
	}
	dataset := args[argDataset]
	if list, ok := dataset.(*pickle.List); ok && len(list.Items) == 1 { // from torch 2.14 on
		dataset = list.Items[0]
	}
	return marked(dataset) || c.recognises(dataset, 0) && plain(args)
}

// marked reports whether an object of Python, or one within, has the attribute that makes a data set Go's. What is around one of those Go explains
// where it does not know it, since Python could not load it either.
func marked(dataset any) bool {
	for d := range pickle.Each[*Dict](dataset) {
		if v, ok := d.Get(datasetName); ok && v != nil {
			return true
		}
	}
	return false
}

// recognises reports whether a data set is of a class that is registered, or of one that every program knows, to the innermost.
func (c Child) recognises(dataset any, depth int) bool {
	o, ok := dataset.(*pickle.Object)
	if !ok || depth > 100 {
		return false
	}
	if _, left := rawAttribute(o, datasetName); left { // with None, or it would be marked
		return false
	}
	if name := o.Class.String(); c.Datasets[name] != nil || c.Streams[name] != nil {
		return true
	}
	inner, around := rawAttribute(o, "dataset")
	if v, several := rawAttribute(o, "datasets"); several {
		inner, around = v, true
	}
	switch {
	case o.Class != chainDataset && known(o.Class) == nil:
		return false
	case !around:
		return true
	}
	list, ok := inner.(*pickle.List)
	if !ok {
		list = &pickle.List{Items: []any{inner}}
	}
	for _, item := range list.Items {
		if !c.recognises(item, depth+1) {
			return false
		}
	}
	return true
}

// plain reports whether a DataLoader has no functions of the script, which a worker of Go's would not call.
func plain(args Tuple) bool {
	collate, _ := args[argCollate].(Global)
	return args[argInit] == nil && collate.Module == defaultCollate.Module
}

var defaultCollate = named("torch.utils.data._utils.collate.default_collate")

// rawAttribute is attribute of an object that is still as the pickle has it.
func rawAttribute(object any, name string) (v any, ok bool) {
	o, _ := object.(*pickle.Object)
	if o == nil {
		return nil, false
	}
	parts, several := o.State.(Tuple) // of a class with __slots__
	if !several {
		parts = Tuple{o.State}
	}
	for _, part := range parts {
		d, _ := part.(*Dict)
		if v, ok := d.Get(name); ok {
			return v, true
		}
	}
	return nil, false
}
