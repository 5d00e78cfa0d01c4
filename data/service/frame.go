package service

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/internal/maker"
	"github.com/shoal-mp/shoal/internal/tree"
	"github.com/shoal-mp/shoal/tensor"
)

// version is of the frames below. A host and a trainer have the same.
const version = 3

// A frame is what goes over a connection, both ways.
type frame struct {
	Kind uint8
	ID   uint64 // of the request

	Epoch, Number int    // of the batch that is asked for, or is dealt: -1 if the epoch is over
	Indices       []int  // of the samples that are asked for
	Trainer       string // that acknowledges a batch

	Loop    uint64        // of the trainer, that reads a Stream
	Portion maker.Portion // that is asked for
	Read    int           // of it
	End     bool          // of its part

	Body    []byte // of a hello
	Samples int    // of a batch; of an answer to an acknowledgement 1, or 0 if it came too late
	Spec    string
	Tensors []*tensor.Tensor
	Err     error
}

// The kinds of frames.
const (
	frameHello  = iota + 1 // from the host, first: a hello as JSON
	frameBeat              // from the host, and to the dealer, again and again: it is alive
	frameBatch             // from the host
	frameFailed            // from the host: it could not make a batch
	frameAsk               // from the trainer: for the batch of a number
	frameGather            // from the trainer: for a batch of samples
	frameCancel            // from the trainer: what it has asked for is not wanted any more
	frameNext              // from the trainer: for the number of a batch that nobody else has
	frameDealt             // from the dealer: the number
	frameAck               // from the trainer: it has used a batch
	frameAcked             // from the dealer
	frameHold              // from the trainer: it works on a batch of the dealer before this one
	frameGive              // from the trainer: it does not want a batch that it was dealt
	frameRead              // from the trainer: for a portion of a Stream
	frameLeave             // from the trainer: a loop that reads a Stream has ended
)

// mostAsked is how many batches a trainer may ask of one host before it has had one.
const mostAsked = 1024

// mostGathered is how many samples a trainer may ask for at once.
const mostGathered = 1 << 16

// A hello is what a host serves. It is JSON, so that other versions can read the version.
type hello struct {
	Version int `json:"version"`
	maker.Identity
	Name   string `json:"name"` // what the hosts call the data set, or a hash of its first sample
	BeatMS int    `json:"beat_ms"`
	Ledger string `json:"ledger"` // of the batches that trainers have acknowledged there
}

func (h hello) encode() ([]byte, error) { return json.Marshal(h) }

func (h *hello) decode(b []byte) error {
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(h); err != nil {
		return err
	}
	if h.Parts < 0 || h.Parts > mostParts || h.Parts > 0 && h.BatchSize < data.Single {
		return fmt.Errorf("%d parts, batches of %d samples", h.Parts, h.BatchSize)
	}
	return nil
}

// differs says in what a host differs from another; empty if in nothing.
func (h hello) differs(o hello) string {
	for _, f := range []struct {
		what      string
		this, one any
	}{
		{"the seed", h.Seed, o.Seed},
		{"the number of samples", h.Samples, o.Samples},
		{"the batch size", h.BatchSize, o.BatchSize},
		{"the number of parts", h.Parts, o.Parts},
		{"DropLast", h.DropLast, o.DropLast},
		{"the number of batches", h.Batches, o.Batches},
		{"the name or the first sample", h.Name, o.Name},
		{"the hash of the order", h.Order, o.Order},
	} {
		if f.this != f.one {
			return fmt.Sprintf("%s is %v there, and %v", f.what, f.this, f.one)
		}
	}
	return ""
}

// some reports whether a frame brings a batch, and not only the end of a part of a Stream.
func (f frame) some() bool { return f.Read > 0 || !f.End }

// batch is what a frame has brought.
func (f frame) batch() maker.Batch {
	v := tree.Value{Spec: f.Spec, Tensors: f.Tensors}
	return maker.Batch{Value: v, Samples: f.Samples, Read: f.Read, End: f.End}
}
