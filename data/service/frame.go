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

// version is the protocol version. Both sides must have the same.
const version = 3

// A frame is a message of the protocol, in either direction. Kind determines which fields are set.
type frame struct {
	Kind uint8
	ID   uint64 // request id

	Epoch, Number int    // requested or dealt batch; Number is -1 if the epoch is finished
	Indices       []int  // requested samples
	Trainer       string // name of the trainer that acknowledges a batch

	Loop    uint64        // id of the trainer's loop over a Stream
	Portion maker.Portion // requested portion of a part
	Read    int           // samples read from the part
	End     bool          // whether the part ended

	Body    []byte // JSON of a hello
	Samples int    // samples in a batch; in a frameAcked, 1 if valid and 0 if too late
	Spec    string
	Tensors []*tensor.Tensor
	Err     error
}

// Kinds of frames.
const (
	frameHello  = iota + 1 // host: first frame, with a hello as JSON
	frameBeat              // host, or trainer to the dealer: periodic heartbeat
	frameBatch             // host: a batch
	frameFailed            // host: a batch could not be made
	frameAsk               // trainer: requests a batch by number
	frameGather            // trainer: requests a batch of given samples
	frameCancel            // trainer: cancels a request
	frameNext              // trainer: requests an unassigned batch number from the dealer
	frameDealt             // dealer: answer to frameNext
	frameAck               // trainer: acknowledges a batch
	frameAcked             // dealer: answer to frameAck
	frameHold              // trainer: reclaims a batch after a restart of the dealer
	frameGive              // trainer: returns an assigned batch
	frameRead              // trainer: requests a portion of a Stream
	frameLeave             // trainer: ends a loop over a Stream
)

// mostAsked is the maximum number of pending requests of a trainer at one host.
const mostAsked = 1024

// mostGathered is the maximum number of samples in one request.
const mostGathered = 1 << 16

// A hello describes the data that a host serves. It is encoded as JSON, so that other versions of
// the protocol can read the version.
type hello struct {
	Version int `json:"version"`
	maker.Identity
	Name   string `json:"name"` // HostOptions.Name, or a hash of the first sample
	BeatMS int    `json:"beat_ms"`
	Ledger string `json:"ledger"` // id of the ledger
}

func (h hello) encode() ([]byte, error) { return json.Marshal(h) }

func (h *hello) decode(b []byte) error {
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(h); err != nil {
		return err
	}
	if h.Parts < 0 || h.Parts > mostParts || h.Parts > 0 && h.BatchSize < data.Single {
		return fmt.Errorf("invalid hello: %d parts, batches of %d samples", h.Parts, h.BatchSize)
	}
	return nil
}

// differenceTo describes the first difference between the data of two hosts, or returns "" if
// both serve the same.
func (h hello) differenceTo(o hello) string {
	for _, f := range []struct {
		what      string
		this, one any
	}{
		{"seed", h.Seed, o.Seed},
		{"number of samples", h.Samples, o.Samples},
		{"batch size", h.BatchSize, o.BatchSize},
		{"number of parts", h.Parts, o.Parts},
		{"DropLast", h.DropLast, o.DropLast},
		{"number of batches", h.Batches, o.Batches},
		{"name or first sample", h.Name, o.Name},
		{"hash of the order", h.Order, o.Order},
	} {
		if f.this != f.one {
			return fmt.Sprintf("%s: got %v, want %v", f.what, f.this, f.one)
		}
	}
	return ""
}

// hasBatch reports whether an answer contains a batch, rather than only the end of a part of a
// Stream.
func (f frame) hasBatch() bool { return f.Read > 0 || !f.End }

// batch returns the batch in a frame. Closing it closes the frame's tensors.
func (f frame) batch() maker.Batch {
	v := tree.Value{Spec: f.Spec, Tensors: f.Tensors}
	return maker.Batch{Value: v, Samples: f.Samples, Read: f.Read, End: f.End}
}
