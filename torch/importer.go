package torch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/tensor"
)

// An importer makes the values of one message.
type importer struct {
	ctx     context.Context
	opts    Options
	manager *Manager // the manager whose answer it is, or nil
	child   bool     // from the Python that has started this process: any name may be in it, and inherited descriptors

	value.Lifter
	storages map[*pickle.Object]*tensor.Tensor // storages by their objects in the message, which hold them
	// a promise to this process, and whether it was taken: a descriptor, or a slot of CUDA's
	// counters
	fetched map[*pickle.Object]bool
	made    []io.Closer
}

// importer returns one for a message of the connection. No context ends it: see Note [Messages that
// have begun].
func (c *Conn) importer() *importer {
	return &importer{ctx: context.Background(), opts: c.opts, child: c.child}
}

// unmarshal reads a message. It takes all that the message promises, also on an error: a descriptor
// that nobody fetches stays open in the sender for ever.
func (i *importer) unmarshal(b []byte) (v any, err error) { return i.make(i.parse(b, nil)) }

// parse reads a message as a tree, with a change of each object in it, if any. On an error the tree
// has what came before the error.
func (i *importer) parse(b []byte, change func(o *pickle.Object)) (tree any, err error) {
	names := allowed().Find
	if i.child {
		names = inertNames
	}
	tree, err = pickle.Unmarshal(b, names, i.opts.limits())
	if errors.Is(err, pickle.ErrGlobal) || errors.Is(err, pickle.ErrForm) {
		err = fmt.Errorf("%w: %w; %s", ErrUnsupported, err, insteadOf(err, tree))
	}
	if err == nil && change != nil {
		for o := range pickle.Each[*pickle.Object](tree) {
			change(o)
		}
	}
	return tree, err
}

// insteadOf says what to send in the place of what a tree has no form of: a tensor of a class, or
// another object.
func insteadOf(err error, tree any) string {
	var refused *pickle.GlobalError
	if errors.As(err, &refused) {
		for o := range pickle.Each[*pickle.Object](tree) {
			if o.Class == rebuildFromType && slices.Contains(o.Args, any(refused.Global)) {
				return "it is " + cannotCross[o.Class]
			}
		}
	}
	return "send what is in it, as a dict, a list or a tuple"
}

// make makes the value of a tree, if it was parsed without an error.
func (i *importer) make(tree any, err error) (v any, _ error) {
	i.begin()
	if err == nil {
		v, err = i.Lift(tree)
	}
	for hold := range maps.Values(i.storages) {
		hold.Close()
	}
	if err == nil {
		return v, nil
	}
	for _, c := range i.made {
		c.Close()
	}
	i.declineAll(tree)
	return nil, fmt.Errorf("receive: %w", err)
}

func (i *importer) begin() {
	i.Lifter = value.Lifter{Object: i.object}
	i.storages, i.fetched = map[*pickle.Object]*tensor.Tensor{}, map[*pickle.Object]bool{}
}

// declineAll takes and drops the promises that were not taken.
func (i *importer) declineAll(tree any) {
	for o := range pickle.Each[*pickle.Object](tree) {
		switch {
		case i.fetched[o]:
		case o.Class == sharedFD:
			if f, err := i.fetch(o); err == nil {
				f.Close()
			}
		case o.Class == rebuildCUDA:
			if c, err := i.cudaForm(o); err == nil {
				c.Close()
			}
		case o.Class == rebuildFilename && i.storages[o] == nil:
			if hold, err := i.storageByName(o); err == nil {
				hold.Close()
			}
		}
	}
}

// object makes the result that a call in Python would have.
func (i *importer) object(o *pickle.Object) (any, error) {
	if i.child {
		if v, ok, err := i.inherited(o); ok {
			return v, err
		}
	}
	if what, known := cannotCross[o.Class]; known {
		return nil, unsupported("%s", what)
	}
	v, err := i.resolve(o)
	if err != nil {
		return nil, err
	}
	if c, ok := v.(io.Closer); ok {
		i.made = append(i.made, c)
	}
	return v, nil
}

func (i *importer) resolve(o *pickle.Object) (any, error) {
	switch o.Class {
	case rebuildTensor:
		return i.tensor(o)
	case rebuildTyped, rebuildChild, rebuildFD, rebuildFilename, rebuildEmpty:
		return i.bareStorage(o)
	case rebuildConn:
		return i.connection(o)
	case rebuildSocket:
		return i.socket(o)
	case sharedFD:
		return i.fetch(o)
	case rebuildCUDA:
		return i.cudaTensor(o)
	case rebuildProxy:
		return i.proxy(o)
	case tokenClass:
		return i.token(o)
	case value.PackedClass:
		p, err := i.Packed(o)
		return &pt.PackedSequence{Data: p[0], BatchSizes: p[1], SortedIndices: p[2], UnsortedIndices: p[3]}, err
	}
	return nil, unsupported("a call of %s", o.Class)
}
