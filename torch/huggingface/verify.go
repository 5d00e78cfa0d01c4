package huggingface

import (
	"errors"
	"fmt"

	flatbuffers "github.com/google/flatbuffers/go"
)

// Note [What Arrow's reader believes] The metadata of a message is a flatbuffer. Arrow's reader
// allocates memory for as many fields as a vector claims to have, and follows nested fields without
// a limit, so a damaged file could exhaust the memory of the program. This file therefore checks
// the lengths of vectors against the number of bytes, and limits the number of fields, before the
// reader sees the metadata. Any other damage makes the reader panic with an index out of range, and
// recoverFaults converts the panic into an error.

// These are the field offsets in the vtables of Message.fbs and Schema.fbs:
// https://github.com/apache/arrow/tree/apache-arrow-18.0.0/format.
const (
	messageHeaderType, messageHeader, messageMetadata = 6, 8, 12
	schemaEndianness, schemaFields, schemaMetadata    = 4, 6, 8
	fieldDictionary, fieldChildren, fieldMetadata     = 12, 14, 16
	batchNodes, batchBuffers                          = 6, 8
	batchCompression, batchVariadic                   = 10, 12
	headerSchema, headerBatch                         = 1, 3
)

const (
	mostFields = 10_000 // fields of a table, including nested ones
	mostDepth  = 64     // nesting levels of fields
)

// verify returns an error for message metadata that would make the reader allocate more than its
// size justifies, and for features of the format that the library datasets never writes to a
// file. It may panic with an index out of range if meta is damaged.
func verify(meta []byte) error {
	if len(meta) < flatbuffers.SizeUOffsetT {
		return errors.New("message header is too short")
	}
	message := flat{Bytes: meta, Pos: flatbuffers.GetUOffsetT(meta)}
	if err := verifyVector(message, messageMetadata, 4); err != nil {
		return err
	}
	header, ok := innerTable(message, messageHeader)
	if !ok {
		return errors.New("message has no header")
	}
	switch message.GetByteSlot(messageHeaderType, 0) {
	case headerSchema:
		if header.GetInt16Slot(schemaEndianness, 0) != 0 {
			return errors.New("byte order is big-endian, want little-endian")
		}
		if err := verifyVector(header, schemaMetadata, 4); err != nil {
			return err
		}
		left := mostFields
		return verifyFields(header, schemaFields, mostDepth, &left)
	case headerBatch:
		if header.Offset(batchCompression) != 0 || header.Offset(batchVariadic) != 0 {
			return errors.New("record batch is compressed or contains string views, which Go does not support")
		}
		return errors.Join(verifyVector(header, batchNodes, 16), verifyVector(header, batchBuffers, 16))
	}
	return errors.New("message is neither a schema nor a record batch")
}

// A flat is a table of a flatbuffer.
type flat = flatbuffers.Table

// verifyFields verifies the vector of fields in a slot of t, and their nested fields. depth is
// the number of levels that are still allowed, and left the number of fields, which it
// decreases.
func verifyFields(t flat, slot flatbuffers.VOffsetT, depth int, left *int) error {
	if err := verifyVector(t, slot, 4); err != nil {
		return err
	}
	o := flatbuffers.UOffsetT(t.Offset(slot))
	if o == 0 {
		return nil
	}
	n := t.VectorLen(o)
	if *left -= n; *left < 0 || depth == 0 {
		return fmt.Errorf("schema has too many fields or levels, want at most %d fields and %d levels",
			mostFields, mostDepth)
	}
	start := t.Vector(o)
	for k := range n {
		field := flat{Bytes: t.Bytes, Pos: t.Indirect(start + flatbuffers.UOffsetT(4*k))}
		if field.Offset(fieldDictionary) != 0 {
			return errors.New("column is dictionary-encoded, which Go does not support")
		}
		if err := verifyVector(field, fieldMetadata, 4); err != nil {
			return err
		}
		if err := verifyFields(field, fieldChildren, depth-1, left); err != nil {
			return err
		}
	}
	return nil
}

// verifyVector returns an error if the vector in a slot of t has more elements than fit in the
// remaining bytes. size is the number of bytes per element. An empty slot is no error.
func verifyVector(t flat, slot flatbuffers.VOffsetT, size int) error {
	o := flatbuffers.UOffsetT(t.Offset(slot))
	if o == 0 {
		return nil
	}
	if n, left := t.VectorLen(o), len(t.Bytes)-int(t.Vector(o)); n < 0 || n > left/size {
		return fmt.Errorf("vector of %d elements does not fit in %d bytes", n, left)
	}
	return nil
}

// innerTable returns the table in a slot. ok is false if the slot is empty.
func innerTable(t flat, slot flatbuffers.VOffsetT) (flat, bool) {
	o := flatbuffers.UOffsetT(t.Offset(slot))
	if o == 0 {
		return flat{}, false
	}
	return flat{Bytes: t.Bytes, Pos: t.Indirect(t.Pos + o)}, true
}
