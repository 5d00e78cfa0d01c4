//go:build linux

package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/anishathalye/porcupine"

	"github.com/shoal-mp/shoal/internal/sys"
)

// An op is the input of an operation.
type op struct {
	Client uint8
	Name   opName
	Key    uint8  // of a dict
	Value  uint64 // put, stored or set
	Old    uint64 // that a compare-and-swap wants
}

// A result is the output of an operation. Its Value and Version are 0 unless the operation returns
// them.
type result struct {
	Outcome outcome
	Value   uint64
	Version uint64
}

// An outcome tells how an operation ended: unknown if its process died before, done, ownerDied,
// or refused or expired without an effect.
type outcome uint8

const (
	unknown   outcome = iota // the process was killed first
	done                     // without an error
	refused                  // ErrFull, ErrEmpty, ErrLocked, ErrNotOwner or ErrNoKey
	expired                  // the deadline has passed
	ownerDied                // a lock was acquired from a dead process
)

// failed reports whether the operation had no effect.
func (o outcome) failed() bool { return o == refused || o == expired }

// entrySize is the encoded size of an entry: the time, the object, the flag of a return, and an op
// or a result.
const entrySize = 40

// A recorder appends entries to a file. An entry is one write, so it survives a kill of the process
// as soon as the write has returned.
type recorder struct {
	file   *os.File
	object int
	buf    [entrySize]byte
}

func openRecorder(path string) (*recorder, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return &recorder{file: f}, err
}

// now returns the time of a clock that all processes of a machine share, in nanoseconds.
func now() int64 { return int64(sys.Monotonic()) }

// do records o, calls f, and records its result. The recorded interval contains the call of f.
// An error of f is returned, and the operation then has no recorded end.
func (r *recorder) do(o op, f func() (result, error)) error {
	b := r.buf[:]
	clear(b)
	binary.LittleEndian.PutUint64(b, uint64(now()))
	binary.LittleEndian.PutUint16(b[8:], uint16(r.object))
	b[11], b[12], b[13] = o.Client, uint8(o.Name), o.Key
	binary.LittleEndian.PutUint64(b[16:], o.Value)
	binary.LittleEndian.PutUint64(b[24:], o.Old)
	if _, err := r.file.Write(b); err != nil {
		return err
	}
	out, err := f()
	if err != nil {
		return fmt.Errorf("%v: %w", o, err)
	}
	clear(b)
	binary.LittleEndian.PutUint64(b, uint64(now()))
	binary.LittleEndian.PutUint16(b[8:], uint16(r.object))
	b[10], b[11], b[12] = 1, o.Client, uint8(out.Outcome)
	binary.LittleEndian.PutUint64(b[16:], out.Value)
	binary.LittleEndian.PutUint64(b[24:], out.Version)
	_, err = r.file.Write(b)
	return err
}

// readHistories reads the file of one process and appends its operations to the history of each
// object. An operation without a return has an unknown result and ends after all others; pending
// is the number of these, 0 or 1. It returns an error if the file is not well formed; a cut last
// entry is ignored.
func readHistories(path string, histories [][]porcupine.Operation) (pending int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var call *porcupine.Operation
	add := func(object int) {
		histories[object] = append(histories[object], *call)
		call = nil
	}
	object := 0
	for {
		var b [entrySize]byte
		if _, err := io.ReadFull(f, b[:]); err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		} else if err != nil {
			return 0, err
		}
		at := int64(binary.LittleEndian.Uint64(b[:]))
		number := int(binary.LittleEndian.Uint16(b[8:]))
		if number >= len(histories) || (b[10] == 1) != (call != nil) {
			return 0, fmt.Errorf("%s: an entry of object %d out of order", path, number)
		}
		object = number
		if b[10] == 0 {
			in := op{Client: b[11], Name: opName(b[12]), Key: b[13],
				Value: binary.LittleEndian.Uint64(b[16:]), Old: binary.LittleEndian.Uint64(b[24:])}
			call = &porcupine.Operation{
				ClientId: int(b[11]), Input: in, Call: at, Output: result{}, Return: math.MaxInt64,
			}
			continue
		}
		call.Return = at
		call.Output = result{outcome(b[12]), binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])}
		add(object)
	}
	if call != nil {
		pending++
		add(object)
	}
	return pending, nil
}
