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

// An importer decodes one message. [Conn.importer] makes it. One goroutine may use it at a time.
type importer struct {
	ctx     context.Context
	opts    Options
	manager *Manager // the manager that sent the message as an answer, or nil
	child   bool     // sent by the Python that started this process: any name and inherited descriptors are allowed

	value.Lifter
	storages map[*pickle.Object]*tensor.Tensor // storages by their objects in the message; closed after decoding
	// fetched is the set of resources of the message that were claimed: descriptors, and slots of
	// CUDA counters.
	fetched map[*pickle.Object]bool
	made    []io.Closer
}

// importer returns an importer for a message of the connection. Its context is never canceled: see
// Note [Messages that have begun].
func (c *Conn) importer() *importer {
	return &importer{ctx: context.Background(), opts: c.opts, child: c.child}
}

// unmarshal decodes a message. The caller must close the value with [CloseAll]. unmarshal claims
// every resource of the message, even on an error, because a descriptor that is not fetched
// stays open in the sender.
func (i *importer) unmarshal(b []byte) (v any, err error) { return i.decodeTree(i.parse(b, nil)) }

// parse parses a message to a tree, and applies change, if it is not nil, to each object in it.
// On an error it returns the part of the tree before the error, so that its resources can be
// claimed. The error wraps [ErrUnsupported] if the message refers to a name that is not allowed
// or to a value without a Go form.
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

// insteadOf returns the remedy for a value that cannot be decoded, for the error text. err is
// the error of the decoder, and tree the part that it decoded.
func insteadOf(err error, tree any) string {
	var refused *pickle.GlobalError
	if errors.As(err, &refused) {
		for o := range pickle.Each[*pickle.Object](tree) {
			if o.Class == rebuildFromType && slices.Contains(o.Args, any(refused.Global)) {
				return "it is " + cannotCross[o.Class]
			}
		}
	}
	return "send its contents as a dict, list or tuple"
}

// decodeTree decodes the tree that parse returned; err is the error of parse. On any error it
// releases all resources of the message.
func (i *importer) decodeTree(tree any, err error) (v any, _ error) {
	i.beginMessage()
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
	i.releaseUnclaimed(tree)
	return nil, fmt.Errorf("receive: %w", err)
}

func (i *importer) beginMessage() {
	i.Lifter = value.Lifter{Object: i.decodeObject}
	i.storages, i.fetched = map[*pickle.Object]*tensor.Tensor{}, map[*pickle.Object]bool{}
}

// releaseUnclaimed claims and releases the resources that the parsed message tree names and that
// were not claimed yet. It may block on the sender.
func (i *importer) releaseUnclaimed(tree any) {
	for o := range pickle.Each[*pickle.Object](tree) {
		switch {
		case i.fetched[o]:
		case o.Class == sharedFD:
			if f, err := i.fetch(o); err == nil {
				f.Close()
			}
		case o.Class == rebuildCUDA:
			if c, err := i.decodeCUDAForm(o); err == nil {
				c.Close()
			}
		case o.Class == rebuildFilename && i.storages[o] == nil:
			if hold, err := i.decodeStorageFilename(o); err == nil {
				hold.Close()
			}
		}
	}
}

// decodeObject decodes an object of a message, and records the value so that it is closed if a
// later part of the message fails. The error wraps [ErrUnsupported] for an object without a Go
// form.
func (i *importer) decodeObject(o *pickle.Object) (any, error) {
	if i.child {
		if v, ok, err := i.decodeInherited(o); ok {
			return v, err
		}
	}
	if what, known := cannotCross[o.Class]; known {
		return nil, unsupported("%s", what)
	}
	v, err := i.resolveObject(o)
	if err != nil {
		return nil, err
	}
	if c, ok := v.(io.Closer); ok {
		i.made = append(i.made, c)
	}
	return v, nil
}

func (i *importer) resolveObject(o *pickle.Object) (any, error) {
	switch o.Class {
	case rebuildTensor:
		return i.decodeTensor(o)
	case rebuildTyped, rebuildChild, rebuildFD, rebuildFilename, rebuildEmpty:
		return i.decodeBareStorage(o)
	case rebuildConn:
		return i.decodeConnection(o)
	case rebuildSocket:
		return i.decodeSocket(o)
	case sharedFD:
		return i.fetch(o)
	case rebuildCUDA:
		return i.decodeCUDATensor(o)
	case rebuildProxy:
		return i.decodeProxy(o)
	case tokenClass:
		return i.decodeToken(o)
	case value.PackedClass:
		p, err := i.Packed(o)
		return &pt.PackedSequence{Data: p[0], BatchSizes: p[1], SortedIndices: p[2], UnsortedIndices: p[3]}, err
	}
	return nil, unsupported("call of %s is not supported", o.Class)
}

// An unpacking is the decoding of a message, which continues after the context of its caller is
// done. [importer.startUnpacking] makes it.
type unpacking struct {
	i    *importer
	done chan struct{} // closed when v and err are set
	v    any
	err  error
}

// unpack decodes a message, unless an earlier call has started to, and waits for the value,
// which is then in a.unpacking. The error is only ever [context.Cause], if ctx is done first;
// the decoding then continues. An error of the decoding itself is in a.unpacking.err.
func (a *arrival) unpack(ctx context.Context, importer func() *importer) error {
	if a.unpacking == nil {
		a.unpacking = importer().startUnpacking(ctx, a.bytes, nil)
	}
	return a.unpacking.awaitDecoded(ctx)
}

// startUnpacking starts to decode a message. change, if not nil, is applied to each object in it
// first. The decoding is complete when startUnpacking returns, unless it may block on another
// process and ctx can be canceled.
func (i *importer) startUnpacking(ctx context.Context, b []byte, change func(o *pickle.Object)) *unpacking {
	o := &unpacking{i: i, done: make(chan struct{})}
	tree, err := i.parse(b, change)
	do := func() {
		o.v, o.err = i.decodeTree(tree, err)
		close(o.done)
	}
	if ctx.Done() != nil && i.mayBlock(tree) {
		go do()
	} else {
		do()
	}
	return o
}

// mayBlock reports whether decoding may block on another process: to fetch a descriptor, to
// reference a manager's object, or for a GPU to write the memory.
func (i *importer) mayBlock(tree any) bool {
	for o := range pickle.Each[*pickle.Object](tree) {
		switch o.Class {
		case sharedFD, rebuildProxy:
			return true
		case rebuildCUDA:
			if i.opts.CUDA {
				return true
			}
		}
	}
	return false
}

// awaitDecoded blocks until the message is decoded, and o.v and o.err may be read. If ctx is
// done first, it returns [context.Cause].
func (o *unpacking) awaitDecoded(ctx context.Context) error {
	select {
	case <-o.done:
		return nil
	default:
	}
	select {
	case <-o.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// awaitValue returns the decoded value or the error of the decoding. If ctx is done first, it
// returns [context.Cause], and the value is closed when it has been decoded.
func (o *unpacking) awaitValue(ctx context.Context) (any, error) {
	if err := o.awaitDecoded(ctx); err != nil {
		go o.dropValue()
		return nil, err
	}
	return o.v, o.err
}

// dropValue blocks until the message is decoded, and closes everything in the value.
func (o *unpacking) dropValue() {
	if <-o.done; o.err == nil {
		for _, c := range o.i.made {
			c.Close()
		}
	}
}
