package torch

import (
	"fmt"
	"io"
	"net"
	"os"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/tensor"
)

// An exporter encodes one message. [Conn.exporter] makes it, and one goroutine may use it. After
// marshal, the caller must call withdrawMessage if the message was not sent or marshal failed,
// and may call closeTransferred if it was sent.
type exporter struct {
	opts Options
	peer peer

	value.Lowerer
	storages map[*tensor.Storage]*pickle.Object // so that views of one storage stay views of one storage
	undoing  []func()
	moved    []io.Closer // values to close after the message is sent
}

func (c *Conn) exporter() *exporter { return &exporter{opts: c.opts, peer: c.peer} }

func (e *exporter) marshal(v any) ([]byte, error) {
	e.Lowerer = value.Lowerer{Own: e.encodeOwn}
	e.storages = map[*tensor.Storage]*pickle.Object{}
	low, err := e.Lower(v)
	if err == nil {
		var b []byte
		if b, err = pickle.Marshal(low, e.opts.protocol()); err == nil {
			return b, nil
		}
	}
	return nil, fmt.Errorf("send %T: %w", v, err)
}

// withdrawMessage withdraws the descriptors and references of a message that was not sent.
func (e *exporter) withdrawMessage() {
	for _, f := range e.undoing {
		f()
	}
}

// closeTransferred closes the connections that were transferred to the receiver of a sent
// message.
func (e *exporter) closeTransferred() {
	for _, sent := range e.moved {
		sent.Close()
	}
}

// encodeOwn is the [value.Lowerer] hook for values that exist in messages only. low is the form
// of v that can be pickled. ok is false for any other value.
func (e *exporter) encodeOwn(v any) (low any, ok bool, err error) {
	switch v := v.(type) {
	case *pickle.Object:
		return v, true, nil
	case *python.Record:
		if v != nil {
			err = unsupported("object of Python class %s cannot be sent: send its contents instead", v.Class)
		}
	case *tensor.Tensor:
		low, err = e.encodeTensor(v, tensorClass, false)
	case *autograd.Param:
		low, err = e.encodeTensor(v.T, parameterClass, !v.Frozen)
	case *pt.PackedSequence:
		if v != nil {
			low, err = e.Packed(v.Data, v.BatchSizes, v.SortedIndices, v.UnsortedIndices)
		}
	case *CUDATensor:
		low, err = e.encodeCUDATensor(v)
	case *Conn:
		low, err = e.encodeConnection(v)
	case net.Conn:
		low, err = e.encodeSocket(v)
	case *os.File:
		low, err = e.encodeDescriptor(v)
	case interface{ self() *Proxy }:
		low, err = e.encodeProxy(v.self())
	case *pipeQueue:
		low, err = e.encodeQueue(v)
	case *semaphore:
		low, err = e.encodeSemaphore(v)
	case *condition:
		low, err = e.encodeCondition(v)
	case *event:
		low, err = e.encodeEvent(v)
	default:
		return nil, false, nil
	}
	return low, true, err
}
